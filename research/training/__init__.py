"""How CodeQA's own code embedding is trained; no part of the installed package.

Every step runs alone (`python -m research.training.<step> --help`), and
`python -m research.training.run` runs all of them. README.md describes the whole.
"""

import os

# Read once, when PyTorch loads its thread library: threads that wait for each other sleep
# instead of spinning. On a machine with other work a training step takes a third of the time.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
