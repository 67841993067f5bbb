#!/bin/sh
# Prepares .venv for `make`: `sh scripts/setup.sh run` or `sh scripts/setup.sh dev`.
#
# Finds a Python that is new enough, creates .venv, gets uv and has it install the packages of
# requirements.lock, checked by their hashes, and for `dev` the versions of constraints.txt. Packages
# that a user added stay. What is done is stamped with a checksum of these lists, so that a second
# call does nothing and touches no network. Downloaded
# packages are kept in WHEELS, so that another checkout on the same machine is set up offline.
# Interrupted at any moment, the next call completes it. Nothing is compiled: Python compiles what
# it imports, which is a sixth of all there is.
#
# PYTHON  the interpreter to use instead of the first that fits
# WHEELS  folder of downloaded packages; default: the user's cache folder
set -eu

cd "$(dirname "$0")/.."
kind=${1:?"usage: sh scripts/setup.sh run|dev"}
case $kind in
    run) list=requirements.lock steps=4 ;;
    dev) list=constraints.txt steps=3 ;;
    *) echo "setup: unknown kind '$kind': say run or dev." >&2; exit 2 ;;
esac
. scripts/packages.sh

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

checksum() { cat scripts/requirements-setup.lock requirements.lock "$1" | cksum; }

stamp=.venv/.set-up-$kind
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(checksum $list)" ] && .venv/bin/python -c "" 2>/dev/null; then
    exit 0
fi

# step TITLE COUNTER COMMAND...: runs the command, what it prints going to a file, and says each
# second how far it is: on a terminal in one line, elsewhere in a line of its own.
step() {
    title=$1 counter=$2; shift 2
    begin='' end='\n'
    [ ! -t 2 ] || { begin='\r\033[K' end=''; }
    printf "$begin%s$end" "$title" >&2
    count &
    counting=$! status=0
    "$@" >.venv/set-up.log 2>&1 || status=$?
    kill "$counting" 2>/dev/null || :
    wait "$counting" 2>/dev/null || :
    [ -z "$begin" ] || printf "$begin%s\n" "$title" >&2
    return "$status"
}

count() {
    seconds=0
    while sleep 1 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        seconds=$((seconds + 1))
        printf "$begin%s$end" "$title:$($counter) $seconds s" >&2
    done
}

# What is there of the packages: unpacked by uv, or on its way as pip says; and in .venv.
packages() {
    arrived=$(($(unpacked) - unpacked_before))
    [ "$arrived" -gt 0 ] || arrived=$(grep -c '^ *Downloading .*(' .venv/set-up.log) || :
    [ "$arrived" = 0 ] || printf ' %s of %s downloaded,' "$arrived" "$wanted"
    printf ' %s of %s installed,' "$(number .venv/lib/python*/site-packages/*.dist-info)" "$wanted"
}
unpacked() { number "$wheels"/uv/archive-v*/*; }
number() { [ -e "$1" ] && echo $# || echo 0; }

# Also with the smallest Python there is: that of Debian comes without pip.
get_uv() {
    unpack_uv && return
    pip --version || .venv/bin/python -m ensurepip || return
    pip download --disable-pip-version-check --retries 2 --no-cache-dir --no-deps \
        --only-binary :all: -d "$wheels" -r scripts/requirements-setup.lock
    unpack_uv
}

# The kept wheel of uv that runs on this machine.
unpack_uv() {
    for wheel in "$wheels"/uv-*.whl; do
        rm -rf .venv/uv
        .venv/bin/python -m zipfile -e "$wheel" .venv/uv || continue
        chmod +x .venv/uv/uv-*.data/scripts/uv
        .venv/uv/uv-*.data/scripts/uv --version || continue
        mv .venv/uv/uv-*.data/scripts/uv .venv/bin/uv
        rm -rf .venv/uv
        return
    done
    return 1
}

if ! .venv/bin/python -c "import sys; sys.exit(sys.prefix == sys.base_prefix)" 2>/dev/null; then
    python=$(find_python)
    say "1 of $steps: creating .venv with $("$python" --version 2>&1)"
    rm -rf .venv
    if ! "$python" -m venv --without-pip .venv; then
        rm -rf .venv
        say "setup: '$python -m venv' failed. On Debian and Ubuntu: apt-get install python3-venv"
        exit 1
    fi
fi
mkdir -p "$wheels"

setup=scripts/requirements-setup.lock
if ! .venv/bin/uv --version >/dev/null 2>&1 &&
    ! step "2 of $steps: getting uv, which installs the packages (25 MB)" : get_uv; then
    setup=''
    if ! step "2 of $steps: uv cannot be had; getting pip, which takes a few times as long" : \
            .venv/bin/python -m ensurepip; then
        tail -n 5 .venv/set-up.log >&2
        say "setup: Python's ensurepip failed. On Debian and Ubuntu: apt-get install python3-venv"
        exit 1
    fi
fi

# An installation that was interrupted may have left packages in part.
again=''
[ ! -e .venv/.installing ] || again=--force-reinstall
: > .venv/.installing
wanted=$(cat $setup "$list" | grep -c '^[A-Za-z]')
unpacked_before=$(unpacked)
install() {
    install_into .venv --no-deps --require-hashes $again ${setup:+-r $setup} -r requirements.lock ||
        return
    [ "$kind" = run ] || install_into .venv --no-deps $again -r constraints.txt
}
if ! step "3 of $steps: installing $wanted packages into .venv" packages install; then
    tail -n 5 .venv/set-up.log >&2
    say "setup: the packages could not be installed; the reason stands above. Check the network and run"
    say "       the same command again; what has arrived is kept in $wheels."
    exit 1
fi
rm .venv/.installing

# The command `codeqa`, for any folder: the environment finds the package in this checkout.
.venv/bin/python -c "import pathlib, sysconfig
folder = pathlib.Path(sysconfig.get_path('purelib'))
(folder / 'codeqa-checkout.pth').write_text(str(pathlib.Path.cwd()) + '\n', encoding='utf-8')"
printf '%s\n' '#!/bin/sh' 'exec "$(dirname "$0")/python" -P -m codeqa "$@"' > .venv/bin/codeqa
chmod +x .venv/bin/codeqa

checksum "$list" > "$stamp"
# The development packages include the others.
[ "$kind" = run ] || checksum requirements.lock > .venv/.set-up-run
[ "$kind" = dev ] || say "4 of 4: starting CodeQA"
