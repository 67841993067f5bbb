"""Add to `codeqa` what several people, processes or machines need. `codeqa.extensions` loads it."""
