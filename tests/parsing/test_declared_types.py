"""The declared type of what a method is called on decides between two of one name."""

from __future__ import annotations

import pytest

from codeqa.parsing import parse_file

# ruff: noqa: E501
CASES = {
    "a.kt": """
interface Reader {
 fun load(x: Int)
}
interface Writer {
 fun load(x: Int)
}
class Desk(private val repo: Reader, w: Writer?) {
 fun a() { repo.load(1); late.load(1) } // Reader Reader
 fun b(r: Reader?) { r?.load(2); r!!.load(3); w.load(1) } // Reader Reader Writer
 lateinit var late: Reader
}""",
    "a.cs": """
interface Reader { void load(int x); }
interface Writer { void load(int x); }
class Desk {
 void A() { repo.load(1); this.repo.load(2); Out.load(4); } // Reader Reader Writer
 void B(Reader r) { r.load(2); foreach (Writer k in s) k.load(1); } // Reader Writer
 readonly Reader repo; public Writer Out { get; set; }
}""",
    "a.cpp": """
struct Reader { virtual void load(int) = 0; };
struct Writer { virtual void load(int) = 0; };
class Desk {
 void a() { repo_->load(1); this->repo_->load(2); w_.load(3); } // Reader Reader Writer
 void b(const Reader& r, std::shared_ptr<Writer> s) { r.load(2); s->load(4); } // Reader Writer
 void c();
 Reader* repo_; Writer w_;
};
void d(boost::intrusive_ptr<const ns::Writer> w, std::vector<Reader> v) { w->load(1); v.load(2); } // Writer -
void Desk::c() { repo_->load(1); auto m = std::make_unique<Writer>(); m->load(4); } // Reader Writer
""",
    "a.swift": """
protocol Reader {
 func load(_ x: Int)
}
protocol Writer {
 func load(_ x: Int)
}
class Desk {
 func a(r: Reader) { repo.load(1); self.w?.load(2); r.load(3) } // Reader Writer Reader
 let repo: Reader
 var w: Writer?
}""",
    "a.php": """<?php
interface Reader { public function load($x); }
interface Writer { public function load($x); }
class Desk {
 private Reader $repo;
 function __construct(private Writer $p) {}
 function a(?Writer $q) { $this->repo->load(1); $q->load(2); } // Reader Writer
 function b() { $this->p->load(3); } // Writer
}""",
    "A.java": """
interface Reader { void load(int x); }
interface Writer { void load(int x); }
class Desk {
 void a() { this.repo.load(2); for (Writer k : ks) { k.load(3); } } // Reader Writer
 private final Reader repo;
}""",
    "a.ts": """
interface Reader { load(x: number): void }
interface Writer { load(x: number): void }
class Desk {
 constructor(private repo: Reader, w: Writer) { this.w = w; }
 a(q?: Writer) { this.repo.load(1); this.w.load(2); q?.load(4); } // Reader Writer Writer
}""",
    "a.py": """
class Reader:
    def load(self): ...
class Writer:
    def load(self): ...
class Desk:
    def a(self, q: Writer | None, s: "Reader"):
        self.repo.load(); q.load(); s.load() # Reader Writer Reader
    def b(self, q: Annotated[Writer, key(1)], s: Optional["Reader"], t: list[Reader]):
        q.load(); s.load(); t.load() # Writer Reader -
    def __init__(self, repo: Reader):
        self.repo = repo
""",
    "a.go": """package a
type Reader[T any] struct{}
type Writer struct{}
func (r *Reader[T]) load() {}
func (w Writer) load() {}
type Desk struct { repo *Reader[int]; all []Writer }
func (d *Desk) a(w *Writer, v map[string]Writer) { d.repo.load(); w.load(); v.load(); d.all.load() } // Reader Writer - -
func b() { r := &Reader[int]{}; var w *Writer; r.load(); w.load() } // Reader Writer
""",
    "a.rs": """
trait Reader { fn load(&self); }
trait Writer { fn load(&self); }
struct Desk { repo: Box<dyn Reader> }
impl Desk {
 fn a(&self, q: &impl Writer) { self.repo.load(); q.load(); } // Reader Writer
 fn b(&self, r: &'a mut dyn Reader, w: std::sync::Arc<dyn Writer>) { r.load(); w.load(); } // Reader Writer
 fn c(v: Vec<Writer>, Reader: Writer) { v.load(); Reader::load(&v); } // - Reader
}""",
}


@pytest.mark.parametrize(("path", "code"), CASES.items(), ids=CASES)
def test_a_declared_type_decides_which_method_is_called(path: str, code: str) -> None:
    parsed = parse_file(path, code.encode())
    owners = {unit.id: unit.class_name for unit in parsed.units}
    calls = [edge for edge in parsed.references if edge.kind == "call" and edge.name == "load"]
    for number, line in enumerate(code.split("\n"), 1):
        if called := [owners.get(call.target, "-") for call in calls if call.line == number]:
            assert called == line.replace("//", "#").rpartition("#")[2].split()
