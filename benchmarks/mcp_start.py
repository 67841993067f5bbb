"""From starting `codeqa mcp` to its first answer: `python -m benchmarks.mcp_start FOLDER`.

The official client starts the server as an agent does, over stdio, and asks for a search; the
folder is an indexed repository. The first start is not counted. By the clock, and in time of the
processor, which a busy machine stretches less.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

from benchmarks.machine import conditions

STARTS = 5
QUESTION = "how is a request dispatched"


async def start(repository: Path) -> dict[str, float]:
    """Seconds until the server is initialized, and until it has answered; and of processor."""
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    program = ["-m", "codeqa", "mcp", "--repo", str(repository)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    server = StdioServerParameters(command=sys.executable, args=program, env={**os.environ})
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        initialized = time.perf_counter() - began
        found = await session.call_tool("search_code", {"query": QUESTION})
        answered = time.perf_counter() - began
        assert not found.is_error, found.content
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"initialized": initialized, "answered": answered, "processor": used}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    repository: Path = parser.parse_args().repository
    runs = [asyncio.run(start(repository)) for _ in range(STARTS + 1)][1:]
    medians = {name: round(statistics.median(run[name] for run in runs), 2) for name in runs[0]}
    print(json.dumps({**conditions(sys.argv), "median_seconds": medians}, indent=1))


if __name__ == "__main__":
    main()
