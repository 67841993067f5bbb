"""Formulas as MathML: what models write is read, what is hostile stays text."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from codeqa.formulas import mathml
from codeqa.render import render_markdown

READ = {
    r"$O(n \log n)$": "O(nlogn)",
    r"\(\text{cost} = \$5, \texttt{a\_b}\)": "cost=$5,a_b",
    r"$$\sum_{i=1}^{n} \frac{x_i}{\sqrt{n}}$$": "∑i=1nxin",
    r"\[ f(x) = \begin{cases} 0 & \text{if } x < 0 \\ 1 \end{cases} \].": "f(x)={0if x&lt;01.",
    "\\begin{align}\na &= b \\label{one} \\\\\nc &= d \\notag\n\\end{align}": "a=bc=d",
    r"$$\begin{aligned} a &= b \\ c &= d \end{aligned}$$": "a=bc=d",
    r"$$\begin{alignedat}{2} a &= b \end{alignedat}$$": "a=b",
    r"$$\begin{gathered} a \\ b \end{gathered}$$": "ab",
    r"$\operatorname{softmax}(z)_i, \operatorname{size\_t}$": "softmax(z)i,size_t",
    r"$\operatorname*{arg\,max}_x \arg\min_y$": "argmaxxargminy",
    r"$\mathbb{E}[X \mid Y] \le \lceil \alpha \rceil \implies \neg p$": "𝔼[X∣Y]≤⌈α⌉⟹¬p",
    r"$\{x \in \mathbb{Z} : \left\lVert x \right\rVert_2 \to \infty\}$": "{x∈ℤ:‖x‖2→∞}",
    r"$\begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}$": "[1234]",
    r"$\boxed{x} \hat{y} \xrightarrow{f} \binom{n}{k}$": "xy^→f(nk)",
}
UNREAD = (
    r"$\nosuch{x}$", r"$\ce{H2O}$", "$x^$", r"$\left( x$", "$a & b$", r"$\text{a {b} c}$", "x", "",
    r"$\newcommand{\a}{\b\b}\a$", r"$\def\a{\a\a}\a$", r"$\DeclareMathOperator{\a}{b}\a$",
    r"$\href{javascript:alert(1)}{x}$", r"$\style{position:fixed}{x}$", r"$\class{dialog}{x}$",
    r"$\hspace{999em}$", r"$\rule{50em}{1em}$", r"$\hspace{9cm}$", f"${'x' * 4000}$",
    f"${'{' * 1500}x{'}' * 1500}$", "$" + "x^{" * 900 + "}" * 900 + "$",
)  # fmt: skip
HOSTILE = (
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$\text{&lt;img src=x onerror=alert(1)&gt;}$",
    r"$\text{</math><script>alert(1)</script>}$",
    r"$\text{<mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>}$",
    r"$\verb|<svg onload=alert(1)>|$",
    r"$\color{red' onclick='alert(1)}{x}$",
    r'$\textcolor{"><script>alert(1)</script>}{x}$',
    r"$\mathop{<img>}$",
)


@pytest.mark.parametrize("formula", READ)
def test_a_formula_as_models_write_it_is_set(formula: str) -> None:
    html = render_markdown(f"{formula}\n")
    assert 'class="maths set"' in html and "<math" in html
    text = re.sub(r"<[^>]+>", "", html).strip().replace("&nbsp;", " ")
    assert re.sub(r" ?\n", "", text) == READ[formula]


@pytest.mark.parametrize("formula", UNREAD)
def test_what_cannot_be_read_or_reaches_beyond_a_formula_stays_text(formula: str) -> None:
    assert mathml(formula) == ""


@pytest.mark.parametrize("formula", HOSTILE)
def test_a_hostile_formula_is_words(formula: str) -> None:
    html = re.sub(r'(?:title|mathcolor)="[^"]*"', "", render_markdown(formula))
    assert not re.search(r"<(?:img|script|style|svg|mglyph)|<[^>]*\son\w+=", html)


def test_so_many_formulas_that_setting_them_would_take_seconds_stay_text_at_last() -> None:
    html = render_markdown("$x$ " * 2010)
    assert html.count("<math") == 2000 and html.count('<span class="maths">$x$') == 10


def test_limits_stand_below_and_names_of_functions_apart() -> None:
    assert "<munder>" in mathml(r"$$\lim_{x \to 0} x$$")
    assert 'rspace="0.167em">log</mo>' in mathml(r"$n \log n$")
    assert 'display="block"' in mathml("\\[x\\]") and 'display="inline"' in mathml("\\(x\\)")


def test_the_package_is_loaded_with_the_first_formula() -> None:
    program = "import sys, codeqa.render as r; {}; sys.exit('latex2mathml' in sys.modules)"
    for work, loaded in (("r.render_markdown('x')", 0), ("r.render_markdown('$x$')", 1)):
        done = subprocess.run([sys.executable, "-c", program.format(work)], check=False)
        assert done.returncode == loaded
