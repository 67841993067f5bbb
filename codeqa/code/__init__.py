"""Relations of code: uses, callers, callees, imports, descriptions.

Each is one function with one result, which pages, tools, counted and quoted answers render.
`codeqa.code.tools` serves agents, `codeqa.code.counted` counted answers.
"""
