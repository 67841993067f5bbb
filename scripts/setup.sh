#!/bin/sh
# Prepares .venv for `make`: `sh scripts/setup.sh run` or `sh scripts/setup.sh dev`.
#
# Finds a Python that is new enough, creates .venv and installs the pinned packages. What is
# done is stamped with a checksum of the requirements, so that a second call does nothing and
# touches no network. Downloaded packages are kept in WHEELS, so that another checkout on the
# same machine is set up offline. Interrupted at any moment, the next call completes it.
#
# PYTHON  the interpreter to use instead of the first that fits
# WHEELS  folder of downloaded packages; default: the user's cache folder
set -eu

cd "$(dirname "$0")/.."
kind=${1:?"usage: sh scripts/setup.sh run|dev"}
case $kind in
    run) lists="requirements.txt" ;;
    dev) lists="requirements.txt requirements-dev.txt" ;;
    *) echo "setup: unknown kind '$kind': say run or dev." >&2; exit 2 ;;
esac

say() { printf '%s\n' "$*" >&2; }

# $1 is the interpreter, $2 the condition on its version.
fits() {
    "$1" -c "import sys; v = sys.version_info; sys.exit(not ($2))" >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        fits "$PYTHON" "v >= (3, 11)" && { echo "$PYTHON"; return; }
        say "setup: PYTHON=$PYTHON is not a Python 3.11 or newer. Name another one or unset PYTHON."
        return 1
    fi
    # First the versions that the tests run on, then anything newer.
    for condition in "(3, 11) <= v < (3, 14)" "v >= (3, 11)"; do
        for name in python3 python3.13 python3.12 python3.11 python; do
            fits "$name" "$condition" && { echo "$name"; return; }
        done
    done
    # pyenv keeps versions that are installed but not active out of PATH.
    if command -v pyenv >/dev/null 2>&1; then
        for version in 3.13 3.12 3.11; do
            folder=$(pyenv prefix "$version" 2>/dev/null) || continue
            fits "$folder/bin/python" "v >= (3, 11)" && { echo "$folder/bin/python"; return; }
        done
    fi
    say "setup: no Python 3.11 or newer was found (looked for python3, python3.11 to 3.13 and python)."
    say "       Install one, or name it: make run PYTHON=/path/to/python3.12"
    return 1
}

checksum() { cat $lists constraints.txt | cksum; }

stamp=.venv/.set-up-$kind
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(checksum)" ] && .venv/bin/python -c "" 2>/dev/null; then
    exit 0
fi

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    say "Creating .venv with $("$python" --version 2>&1)"
    rm -rf .venv
    if ! "$python" -m venv .venv; then
        rm -rf .venv
        say "setup: '$python -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv"
        exit 1
    fi
fi

wheels=${WHEELS:-${XDG_CACHE_HOME:-${HOME:-.}/.cache}/codeqa/wheels}
mkdir -p "$wheels" 2>/dev/null && [ -w "$wheels" ] || { wheels=.venv/wheels; mkdir -p "$wheels"; }

arguments="-c constraints.txt --prefer-binary --disable-pip-version-check"
for list in $lists; do arguments="$arguments -r $list"; done

# Some are for other systems.
wanted=$(cat $lists constraints.txt | grep -c '^[A-Za-z]')

# How many packages are in .venv, each second: on a terminal in one line, in a log each twenty.
count() {
    told=$(installed)
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        now=$(installed)
        if [ -t 2 ]; then
            [ "$now" = "$told" ] || printf '\r  %s of at most %s packages' "$now" "$wanted" >&2
        elif [ "$now" -ge $((told + 20)) ]; then
            say "  $now of at most $wanted packages"
            told=$now
        fi
    done
}
installed() { set -- .venv/lib/python*/site-packages/*.dist-info; echo $#; }

# From the kept downloads alone; tried first, so that it works offline. pip's errors go to 3.
install() {
    count 3>&- &
    counting=$! failed=0
    .venv/bin/python -m pip install -q --no-compile $arguments --no-index --find-links "$wheels" 2>&3 || failed=$?
    kill "$counting"
    [ ! -t 2 ] || printf '\r\033[K' >&2
    return "$failed"
}

# pip draws bars on a terminal; of what it says in a log one line a package is enough.
download() {
    if [ -t 2 ]; then
        .venv/bin/python -m pip download $arguments --no-cache-dir -d "$wheels"
        return
    fi
    failed=$({ { .venv/bin/python -m pip download $arguments --progress-bar off --no-cache-dir \
        -d "$wheels" 2>&1 && echo 0 >&3 || echo 1 >&3; } | grep -E '^ *Downloading .*\(|ERROR|WARNING' >&2; } 3>&1) || :
    return "$failed"
}

for kept in "$wheels"/*.whl; do
    [ ! -e "$kept" ] || say "Installing the packages into .venv, as they are kept in $wheels"
    break
done
if ! install 3>/dev/null; then
    say "Downloading the packages to $wheels (once; about 170 MB, with the tests' 230, half a minute on a fast line)"
    if ! download; then
        say "setup: the packages could not be downloaded. Check the network and run the same command"
        say "       again; what has arrived is kept in $wheels."
        exit 1
    fi
    say "Installing the packages into .venv"
    install 3>&2 || { say "setup: the packages could not be installed; the reason stands above."; exit 1; }
fi
# On all processors; pip takes one. Some packages bring files of other versions of Python, and two
# fifths of all are what hardly anything reads: their tests, and modules that are compiled to C.
.venv/bin/python -m compileall -q -j 0 -x '/(tests|moto|mypyc?|setuptools|types)/' .venv/lib >/dev/null 2>&1 || :
# The command `codeqa`, for any folder: the environment finds the package in this checkout.
.venv/bin/python -c "import pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_path('purelib'))
(folder / 'codeqa-checkout.pth').write_text(str(pathlib.Path.cwd()) + '\n', encoding='utf-8')"
printf '%s\n' '#!/bin/sh' 'exec "$(dirname "$0")/python" -P -m codeqa "$@"' > .venv/bin/codeqa
chmod +x .venv/bin/codeqa

checksum > "$stamp"
# The development list holds the other one.
[ "$kind" = run ] || { lists=requirements.txt; checksum > .venv/.set-up-run; }
