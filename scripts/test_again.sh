#!/usr/bin/env bash
# Runs `make test` again and again with busy loops beside it, as on a machine that others use as well:
#
#   bash scripts/test_again.sh         five times with six loops, which takes three quarters of an hour on two cores
#   bash scripts/test_again.sh 3 0     three times alone
#
# Says of each run how long it took (real, then processor seconds, the loops' left out) and how it ended;
# of one that failed all that it printed is kept. Exit status 1 when one failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
runs=${1:-5} loops=${2:-6} failed=0
output=$(mktemp)
trap 'kill $(jobs -p) 2>/dev/null; rm -f "$output"' EXIT
for ((loop = 0; loop < loops; loop++)); do
    while :; do :; done &
done
TIMEFORMAT='%0R s, of processors %0U + %0S s'
for ((run = 1; run <= runs; run++)); do
    taken=$({ time make test >"$output" 2>&1; } 2>&1) && status=green || { status=RED failed=1; }
    printf '%s of %s with %s busy loops: %s, %s\n' "$run" "$runs" "$loops" "$status" "$taken"
    if [ "$status" = green ]; then
        tail -n 1 "$output"
    else
        kept=$(mktemp)
        cp "$output" "$kept"
        grep -E '^(E  |FAILED|ERROR)' "$output"
        echo "all of it: $kept"
    fi
done
exit "$failed"
