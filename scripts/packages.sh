# Sourced from the top of the checkout by what installs packages. uv in .venv does that, and pip
# where uv cannot be had.
#
# WHEELS  folder that keeps what was downloaded; default: the user's cache folder

say() { printf '%s\n' "$*" >&2; }

wheels=${WHEELS:-${XDG_CACHE_HOME:-${HOME:-.}/.cache}/codeqa/wheels}
mkdir -p "$wheels" 2>/dev/null && [ -w "$wheels" ] || wheels=.venv/wheels

# install_into ENVIRONMENT OPTION...: the options that uv and pip share. What is kept in WHEELS is
# tried first, so that it works offline.
install_into() {
    if .venv/bin/uv --version >/dev/null 2>&1; then
        with_uv "$@" --offline >/dev/null 2>&1 && return
        UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$(index_of_pip)} with_uv "$@" && return
        say "uv could not install the packages; pip tries it."
    fi
    with_pip install "$@" --no-compile --no-index >/dev/null 2>&1 && return
    with_pip download "$@" -d "$wheels" && with_pip install "$@" --no-compile --no-index
}

with_uv() {
    environment=$1; shift
    UV_CACHE_DIR="$wheels/uv" .venv/bin/uv pip install -q --python "$environment/bin/python" \
        --find-links "$wheels" "$@"
}

with_pip() {
    action=$1 environment=$2; shift 2
    pip --python "$environment/bin/python" "$action" --disable-pip-version-check --prefer-binary \
        --find-links "$wheels" "$@"
}

# The pip of .venv, else that of the interpreter that .venv was made with.
pip() {
    if ! .venv/bin/python -c "import pip" 2>/dev/null; then
        "$(.venv/bin/python -c "import sys; print(sys._base_executable)")" -m pip "$@"
    else
        .venv/bin/python -m pip "$@"
    fi
}

# uv does not read the configuration of pip: where that names another index, uv takes it as well.
index_of_pip() { pip config list 2>/dev/null | sed -n "s/^.*\.index-url='\(.*\)'$/\1/p" | tail -n 1; }
