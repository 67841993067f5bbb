"""C, C++ and C#: macros and conditions that a grammar cannot read hide no definition."""

from __future__ import annotations

import pytest

from codeqa.languages import detect
from codeqa.parsing import parse_file
from codeqa.types import TEXT_KINDS

# ruff: noqa: E501
MACROS = [
    ("class dll_export Reader : public Base {\n  int read();\n};\n", "Reader Reader::read"),
    ('class CAPABILITY("mutex") Mutex { void Lock() ACQUIRE(); };\n', "Mutex Mutex::Lock"),
    ("struct PACKED Entry { int key() { return 1; } };\n", "Entry Entry::key"),
    ("class API Guard final : public B { int n(); };\n", "Guard Guard::n"),
    ("class A {\n  int get() const REQUIRES(mu_) { return n_; }\n};\n", "A A::get"),
    ("class A {\n  int n_ GUARDED_BY(mu_) = 0;\n  int f();\n};\n", "A A::f"),
    ("void A::put(int n) EXCLUDES(mu_) {\n}\n", "A::put"),
    ('class W : public QObject {\n  Q_OBJECT\n  Q_CLASSINFO("a", "b")\npublic:\n  int f();\n};\n', "W W::f"),
    ('TEST_F(Suite, Name) {\n}\nTEST_CASE("it works") {\n}\n', "Name,it works"),
    ("BENCHMARK_F(Fix, template)(State& st) {\n}\n", "template"),
    ("PYBIND11_MODULE(core, m) {\n}\nint f() { return 1; }\n", "core f"),
    ("namespace a::inline v1 {\nint f() { return 1; }\n}\n", "a::v1::f"),
    ("export module m;\nexport {\n  int f() { return 1; }\n  struct B { };\n}\n", "f B"),
    ("struct A {\n  template <bool D, class U>\n  void f(std::enable_if_t<!D, U>* = nullptr) { }\n  void g(int* = 0, char* c = NULL);\n};\n", "A A::f A::g"),
    ('A_FLAG(int, y, 1, "h");\nint f() { return 1; }\n', "f"),
    ("MACRO_ONE\nMACRO_TWO(a, b)\nclass A : public B {\n  int f();\n};\n", "A A::f"),
    ("LIB_NAMESPACE_USING_DIRECTIVE\n\nclass A {\n  int f() { return 1; }\n};\n", "A A::f"),
    ("struct F { operator bool() const; operator const char*(); };\n", "F,F::operator bool,F::operator const char*"),
    ("class API_ [[nodiscard]] A { int f(); };\nclass [[nodiscard]] API_ B : public A { };\n", "A A::f B"),
    ("class A {\n  A();\n  ~A();\n  MOCK_METHOD(void, f, (int));\n  STATIC_ASSERT(sizeof(int) == 4);\n};\n", "A A::A A::~A"),
    ("void f() {\n  // or not\n  IO_TRY { g(); }\n  IO_CATCH(...) {}\n}\nint h();\n", "f h"),
    ("\nDEFINE_KIND(void, );\nDEFINE_KIND(bool, 1);  // one\n}  // namespace\nclass A {\n  typedef typename B<C>::D E;\n  typedef CUT_(B) F;\n};\n", "A A::E A::F"),
    ("\nextern template auto a<char>(B) -> C<char>;\n// #if\ntemplate <typename T> auto f(T t) -> bool { return unsigned(t) < 2; }\n", "f"),
    ("template <class T> T***& a::B<T>::C<T*>::f() { }\nint (*A::g(int))(char) { return 0; }\na::A::~A() { }\nint ::h() { return 1; }\nauto A::operator[](int) -> int& { }\n", "a::B::C::f A::g a::A::~A h A::operator[]"),
    ("// sizes\nconst double A::size[n] = { 1, 2 };\nclass a::A::B { int x; };\ntypedef int* (*F)(int);\ntypedef A* Make();\n", "A::size a::A::B F Make"),
    ("enum : unsigned { a = 1 };\nint f(A* absl_nonnull a, B* absl_nullable, C* _Nonnull b);\n", "f"),
]  # fmt: skip

C_MACROS = [
    ("void f(void)\n{\n  FOREACH(x, list) {\n  }\n}\n", "f"),
    ("SYSCALL_DEFINE2(open, const char __user *, name, int, flags)\n{\n}\n", "open"),
    ("int show(int a)\n{\n}\nstatic DEVICE_ATTR_RO(show);\nint f(void) { return 1; }\n", "show f"),
    ("PHP_METHOD(Foo, bar) {\n}\nint f(void) { return 1; }\n", "bar f"),
    ("void f(struct x *l)\n\t__acquires(&l->lock)\n{\n}\n", "f"),
    ("int f(void)\n{\n#ifdef A\n  if (a) {\n#else\n  if (b) {\n#endif\n  }\n}\nint g(void);\n", "f g"),
    ("#ifdef A\nint f(int a) {\n#else\nint f(void) {\n#endif\n}\n#ifndef A\nint no(void) {\n#else\nint g(void) {\n#endif\n}\n", "f g"),
    ("int f(int a)\n{\n#if A\n#endif\n#if B\n  if (a) {\n#else\n  if (b) {\n#endif\n  }\n}\n", "f"),
    ("int f(int a)\n{\n  if (a) {\n  }\n#ifdef A\n  else if (b) {\n  }\n#endif\n  else {\n  }\n}\n", "f"),
    ("static int\n#ifdef A\nf(int a)\n#else\nno(void)\n#endif\n{\n}\n#if A\nint g(void) { }\n#else\nint h(void) { }\n#endif\n", "f g h"),
]  # fmt: skip

C_MACROS += [
    ("char *\nf (p, list)\n  const char *p; /* one; two */\n  struct node **list;\n{\n  EACH(x) {\n  }\n}\n", "f"),
    ("static int\ninternal_function\nf (struct a *b)\n{\n  if (b) }\n", "f"),
    ("typedef int (f)(int a);\ntypedef void *g(int a);\ntypedef struct a { int b; } c, *d;\n", "f g a c d"),
    ("int f(void)\n{\n#ifndef A\n  g();\n#else\n  if (b) {\n  }\nagain:\n#endif\n  for (;;) {\n  }\n}\nint h(int a) { if (}\n", "f h"),
    ("int f(void)\n{\n#ifdef A\n  if (a) {\n  }\n#endif\n#ifndef B\n  else if (b) {\n  }\n#endif\n}\n", "f"),
]  # fmt: skip

C_SHARP = [
    ("public class A\n#if NET\n  : IB\n#endif\n{\n  void F() { }\n}\n", "A A.F"),
    ("interface IA\n#if NET\n  : IB\n#else\n  : IC\n#endif\n{\n  int F();\n}\n", "IA IA.F"),
    ("class A {\n  void F() {\n#if Q\n    if (a) {\n#else\n    if (b)\n    {\n#endif\n    }\n  }\n  int G() { return 1; }\n}\n", "A A.F A.G"),
    ("class A {\n  bool F(int a)\n#if Q\n    => a == 1;\n#else\n    => false;\n#endif\n  void G() { }\n}\n", "A A.F A.G"),
    ("class A {\n  public static implicit operator int(A a) => 1;\n  public static A operator +(A a, A b) => a;\n  ~A() { }\n}\n", "A,A.operator int,A.operator +,A.~A"),
    ("class A {\n  void F() {\n    switch (k) {\n      case K.A:\n        g();\n        break;\n#if Q\n      case K.B:\n        w.Write((B)v);\n        return;\n#endif\n      default:\n        throw new E();\n    }\n  }\n}\n", "A A.F"),
]  # fmt: skip

CASES = [("a.cpp", *case) for case in MACROS]
CASES += [("a.c", *case) for case in C_MACROS] + [("a.cs", *case) for case in C_SHARP]


@pytest.mark.parametrize(("path", "code", "names"), CASES, ids=[case[2] for case in CASES])
def test_each_definition_has_its_own_name(path: str, code: str, names: str) -> None:
    units = parse_file(path, code.encode()).units
    defined = [unit.qualified_name for unit in units if unit.kind not in TEXT_KINDS | {"module"}]
    assert defined == names.split("," if "," in names else None)


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("struct Square : Shape {\n};\n", "cpp"),
        ("enum struct Level { Low };\n", "cpp"),
        ("class LIB2_API Window : public Frame {\n};\n", "cpp"),
        ("bool operator==(const P& a, const P& b);\n", "cpp"),
        ("struct Base { virtual ~Base(); };\n", "cpp"),
        ("struct node { struct node *next; int class; int new; };\n", "c"),
        ("/* a class of operators */\nint f(int *a, int b : 3);\n", "c"),
    ],
)
def test_a_header_is_cpp_where_only_cpp_reads_it(code: str, key: str) -> None:
    language = detect("a.h", code.encode())
    assert language is not None and language.key == key


def test_a_capital_c_and_modules_are_cpp() -> None:
    assert {parse_file(f"a{end}", b"int f();\n").language for end in (".C", ".cppm")} == {"cpp"}


def test_a_macro_line_is_no_part_of_the_function_below_where_it_ends_with_a_semicolon() -> None:
    code = "static DEVICE_ATTR_RO(show);\nint f(void) { return 1; }\nNS_BEGIN_NAMESPACE\nint g();\n"
    code += "EXPORT_SYMBOL(g);\nint h(void) { return 1; }\nEXPORT_TO(int);\nint i() { }\n"
    spans = {unit.name: unit.start_line for unit in parse_file("a.cpp", code.encode()).units}
    assert [spans.get(name) for name in "fghi"] == [2, 4, 6, 8]
