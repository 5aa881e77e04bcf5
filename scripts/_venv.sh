# Sourced by the other scripts: `venv EXTRAS` installs adbench with these extras into .venv, once, and `venv --group NAME`
# with a dependency group of pyproject.toml. A stamp file records the installation, so later calls do nothing.
# After `use_python 3.13`, it is that Python, and .venv-3.13.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=.venv
venv_python="$root/.venv/bin/python"
constraints=(--constraint "$root/constraints.txt")

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

python_command() {
    local candidate
    for candidate in "${PYTHON:-python3}" python3.11 python3.12 python3.13 python3.14; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is missing (found: $(python3 --version 2>/dev/null || echo none)); on Debian: apt install python3"
    exit 2
}

# The command for a Python such as 3.13: in the path, or among pyenv's versions.
find_python() {
    local candidate
    for candidate in "python$1" $(printf '%s\n' "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1"*/bin/python | sort --version-sort --reverse); do
        if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$1" ]; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    return 1
}

newest_python() {
    local version
    for version in 3.14 3.13 3.12 3.11; do
        if find_python "$version" >/dev/null; then
            printf '%s\n' "$version"
            return
        fi
    done
    python_command >/dev/null  # says what is missing
}

use_python() {
    PYTHON=$(find_python "$1") || { say "Python $1 is missing: no python$1 in the path, and none among pyenv's versions"; exit 2; }
    venv=.venv-$1${2:+-$2}
    venv_python="$root/$venv/bin/python"
}

pip_install() { "$venv_python" -m pip install --disable-pip-version-check "$@"; }

venv() {
    local what="adbench[$1]" name=$1 python stamp wanted log
    local requested=(--editable "$root[$1]")
    if [ "$1" = --group ]; then
        what="adbench and its dependency group $2" name=group-$2
        requested=(--editable "$root" --group "$root/pyproject.toml:$2")
    fi
    stamp="$root/$venv/.installed-$name"
    wanted=$(cat "$root/pyproject.toml" "$root/constraints.txt" | cksum)
    if [ -x "$venv_python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    if [ ! -x "$venv_python" ]; then
        python=$(python_command) || exit 2
        if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
            say "this Python cannot create virtual environments; on Debian: apt install python3-venv"
            exit 2
        fi
        say "making $venv"
        "$python" -m venv "$root/$venv"
    fi
    say "installing $what into $venv (once; takes a minute)"
    log="$root/$venv/install.log"
    if ! pip_install 'pip>=25.1' >"$log" 2>&1 ||  # the first that knows groups; Debian 12 has 23.0
        ! pip_install "${constraints[@]}" "${requested[@]}" >>"$log" 2>&1; then
        tail -n 5 "$log" >&2
        if command -v cc >/dev/null; then
            say "installation failed; see $log"
        else
            say "installation failed without a C compiler, which packages without wheels need; on Debian: apt install build-essential"
        fi
        exit 2
    fi
    printf '%s' "$wanted" >"$stamp"
}
