"""What code means: what a place refers to, and what follows from that. Each thing is one function
with one result, which pages, tools, counted and quoted answers render.

`codeqa.code.tools` are the same for agents, `codeqa.code.counted` for questions that are counted.
"""
