# Finds out what this machine lacks before anything slow starts. Sourced by scripts/install.
# Knows nothing about packages, wheels or models: only the interpreter, compiler, headers, disk and memory.
# shellcheck shell=sh

say() { printf '%s\n' "$*"; }

fail() {
    printf 'kith set-up: %s\n' "$*" >&2
    exit 1
}

# An interpreter that Kith supports, or nothing. KITH_PYTHON names one explicitly.
find_python() {
    for candidate in ${KITH_PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' >/dev/null 2>&1; then
            # the interpreter itself, not a version manager's shim: the environment must not depend on a shim's mood
            "$candidate" -c 'import sys; print(sys.executable)'
            return 0
        fi
    done
    return 1
}

compiles() { # LANGUAGE EXTRA-FLAGS..., source on standard input
    language=$1
    shift
    if [ "$language" = c++ ]; then compiler=${CXX:-g++}; else compiler=${CC:-gcc}; fi
    "$compiler" -x "$language" - -o /dev/null "$@" >/dev/null 2>&1
}

# Debian packages that would supply what is missing, one line; empty when nothing is.
# Each thing is tried, not looked up in a package list: other systems and other prefixes count too.
missing_packages() { # PYTHON
    missing=
    if ! printf 'int main(void){return 0;}' | compiles c \
        || ! printf '#include <string>\nint main(){return 0;}' | compiles c++ -std=c++17; then
        missing="$missing build-essential"
    fi
    if ! printf '#include <gmp.h>\nint main(void){mpz_t n; mpz_init(n); return 0;}' | compiles c -lgmp; then
        missing="$missing libgmp-dev"
    fi
    series=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    case $1 in
        /usr/bin/python3) dotted=3 ;;
        *) dotted=$series ;;
    esac
    headers=$("$1" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    if ! printf '#include <Python.h>\nint main(void){return 0;}' | compiles c "-I$headers" -c; then
        missing="$missing python$dotted-dev"
    fi
    if ! "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        missing="$missing python$dotted-venv"
    fi
    printf '%s' "${missing# }"
}

# Debian packages with which tests play networks, routers and message buses; without them these tests skip, saying so.
test_packages() {
    missing=
    command -v ip >/dev/null 2>&1 || missing="$missing iproute2"
    command -v nft >/dev/null 2>&1 || missing="$missing nftables"
    command -v dbus-daemon >/dev/null 2>&1 || missing="$missing dbus-daemon"
    printf '%s' "${missing# }"
}

# Says in ONE line what to install; runs it only where nobody has to be asked: as root, or in CI.
supply_packages() { # PACKAGES
    [ -n "$1" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        fail "missing here (named as Debian packages, install their equivalents): $1"
    fi
    if [ "$(id -u)" -eq 0 ]; then
        say "missing: $1"
        say "+ apt-get update && apt-get install -y $1"
        # shellcheck disable=SC2086 # a list of words is what is meant
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $1; } >&2 \
            || fail "apt-get could not install: $1"
    elif [ "${CI:-}" = true ] && sudo -n true >/dev/null 2>&1; then
        # shellcheck disable=SC2086
        { sudo -n apt-get update -q && sudo -n apt-get install -y -q --no-install-recommends $1; } >&2 \
            || fail "apt-get could not install: $1"
    else
        printf '\nSome system packages are missing. Run this line, then try again:\n\n' >&2
        printf '    sudo apt-get update && sudo apt-get install -y %s\n\n' "$1" >&2
        exit 1
    fi
}

require_disk() { # FOLDER NEEDED-GB
    free_kb=$(df -Pk "$1" | awk 'NR == 2 {print $4}')
    if [ "$free_kb" -lt $(($2 * 1024 * 1024)) ]; then
        fail "$1 has $((free_kb / 1024)) MB free and set-up needs $2 GB. Free some space, then try again."
    fi
}

# How many compilers may run at once: one per core, as long as each has 1.5 GB of memory.
build_jobs() {
    cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
    available_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || true)
    by_memory=$((${available_kb:-3145728} / 1572864))
    [ "$by_memory" -ge 1 ] || by_memory=1
    if [ "$by_memory" -lt "$cores" ]; then echo "$by_memory"; else echo "$cores"; fi
}

warn_memory() {
    available_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || true)
    if [ "${available_kb:-3145728}" -lt 1048576 ]; then
        say "note: $((available_kb / 1024)) MB of memory free; the native build wants about 1.5 GB and may be killed."
    fi
}
