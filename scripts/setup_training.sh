#!/bin/sh
# Prepares .venv-training for `make test-training`: what training needs (torch, some gigabytes)
# and what the tests need. .venv must be there (`make setup-dev`).
#
# Exit status 75: the packages could not be downloaded, which is no fault of the checkout.
set -eu

cd "$(dirname "$0")/.."
environment=.venv-training
stamp=$environment/.set-up
. scripts/packages.sh

checksum() { cat requirements*.txt constraints.txt research/requirements-training.txt | cksum; }

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(checksum)" ]; then
    exit 0
fi

say "Installing what training needs into $environment (once; a minute or two on a fast line)"
[ -x "$environment/bin/python" ] || .venv/bin/python -m venv --without-pip "$environment"
log=$environment/install.log

if ! install_into "$environment" -c constraints.txt \
        -r requirements.txt -r requirements-dev.txt -r research/requirements-training.txt \
        >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    if grep -Eq 'ResolutionImpossible|conflicting dependencies|metadata-generation-failed' "$log"; then
        say "setup_training: the packages do not go together; the reason stands above."
        exit 1
    fi
    say "setup_training: the packages could not be downloaded. Check the network and try again."
    exit 75
fi
checksum > "$stamp"
