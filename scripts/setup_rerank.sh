#!/bin/sh
# Prepares .venv-rerank for `make test-rerank`: this checkout with its extra "rerank" (torch and
# transformers, some gigabytes) and what the tests need. .venv must be there (`make setup-dev`).
#
# Exit status 75: the packages could not be downloaded, which is no fault of the checkout.
set -eu

cd "$(dirname "$0")/.."
environment=.venv-rerank
stamp=$environment/.set-up
wheels=${WHEELS:-${XDG_CACHE_HOME:-${HOME:-.}/.cache}/codeqa/wheels}

say() { printf '%s\n' "$*" >&2; }

checksum() { cat pyproject.toml requirements.txt requirements-dev.txt constraints.txt | cksum; }

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(checksum)" ]; then
    exit 0
fi

say "Installing the extra \"rerank\" into $environment (once; a minute or two on a fast line)"
[ -x "$environment/bin/python" ] || .venv/bin/python -m venv "$environment"
arguments="-qq --disable-pip-version-check --prefer-binary -c constraints.txt"
log=$environment/install.log

# The build tools come with the tests' packages, so that the checkout is built with the pinned ones.
if ! "$environment/bin/python" -m pip install $arguments --find-links "$wheels" \
        -r requirements.txt -r requirements-dev.txt >"$log" 2>&1 ||
   ! "$environment/bin/python" -m pip install $arguments --find-links "$wheels" \
        --no-build-isolation '.[rerank]' >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    if grep -Eq 'ResolutionImpossible|conflicting dependencies|metadata-generation-failed' "$log"; then
        say "setup_rerank: the packages of the extra do not go together; the reason stands above."
        exit 1
    fi
    say "setup_rerank: the extra could not be downloaded. Check the network and try again."
    exit 75
fi
checksum > "$stamp"
