# Finds out what fdbench's build lacks on this machine and installs it (Debian, Ubuntu) or says what to install.
# Sourced by scripts/quickstart.sh and scripts/test.sh. What is there already is left alone, wherever it came from.

# One line a need: name | how to see that it is there | apt | dnf | pacman | zypper | brew
FDBENCH_NEEDS_BUILD='
compiler|has_compiler|build-essential|gcc-c++|gcc|gcc-c++|gcc
cmake|has_command cmake|cmake|cmake|cmake|cmake|cmake
ninja|has_command ninja|ninja-build|ninja-build|ninja|ninja|ninja
git|has_command git|git|git|git|git|git
python3|has_command python3|python3|python3|python|python3|python
CLI11|has_header CLI/CLI.hpp|libcli11-dev|cli11-devel|cli11|cli11-devel|cli11
nlohmann-json|has_header nlohmann/json.hpp|nlohmann-json3-dev|json-devel|nlohmann-json|nlohmann_json-devel|nlohmann-json
fmt|has_header fmt/core.h|libfmt-dev|fmt-devel|fmt|fmt-devel|fmt
highway|has_header hwy/highway.h|libhwy-dev|highway-devel|highway|pkgconfig(libhwy)|highway
'
FDBENCH_NEEDS_TEST='
googletest|has_header gtest/gtest.h|libgtest-dev|gtest-devel|gtest|pkgconfig(gtest)|googletest
'
FDBENCH_NEEDS_FORMAT='
clang-format|has_command clang-format|clang-format|clang-tools-extra|clang|clang-tools|clang-format
'

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "$*"
  exit 1
}

has_command() { command -v "$1" >/dev/null 2>&1; }

# The compiler that CMake will take.
cxx() { printf '%s' "${CXX:-$(has_command c++ && echo c++ || echo g++)}"; }

has_compiler() { has_command "$(cxx)"; }

has_header() {
  has_compiler && printf '#include <%s>\n' "$1" | "$(cxx)" -std=c++20 -E -x c++ - >/dev/null 2>&1
}

# missing_packages COLUMN NEEDS: what is not there, as packages of the manager in that column (3 = apt, ...), one a line.
missing_packages() {
  local column=$1 name test apt dnf pacman zypper brew
  printf '%s' "$2" | while IFS='|' read -r name test apt dnf pacman zypper brew; do
    [ -n "$name" ] || continue
    if $test; then continue; fi
    case $column in
      apt) echo "$apt" ;;
      dnf) echo "$dnf" ;;
      pacman) echo "$pacman" ;;
      zypper) echo "$zypper" ;;
      brew) echo "$brew" ;;
      *) echo "$name" ;;
    esac
  done
}

# As root, through sudo where need be. Without a terminal nobody could type a password: sudo then must not ask.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif [ -t 0 ]; then
    sudo "$@"
  else
    sudo -n "$@"
  fi
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}

# Package lists are fetched only where the packages cannot be had with those that are there (none, or too old).
apt_install() {
  local updated=no
  if [ "$(id -u)" -ne 0 ] && ! has_command sudo; then
    die "these packages are missing, and installing them takes root or sudo, of which there is neither. As root:
    apt-get update && apt-get install -y $*"
  fi
  say "installing $*"
  if ! apt-get -qq install --simulate --no-install-recommends "$@" >/dev/null 2>&1; then
    apt_get update || say "apt-get update reported errors; going on with what it found"
    updated=yes
  fi
  apt_get install -y --no-install-recommends "$@" >/dev/null && return
  if [ "$updated" = no ]; then
    apt_get update || say "apt-get update reported errors; going on with what it found"
    apt_get install -y --no-install-recommends "$@" >/dev/null && return
  fi
  die "apt-get could not install: $*"
}

# The first package manager that is here, or "none".
package_manager() {
  local manager
  for manager in apt-get dnf pacman zypper brew; do
    if has_command "$manager"; then
      echo "${manager%-get}"
      return
    fi
  done
  echo none
}

# need NEEDS: afterwards all of them are there, or the script has ended with a message.
need() {
  local manager command missing left
  manager=$(package_manager)
  missing=$(missing_packages "$manager" "$1" | tr '\n' ' ')
  missing=${missing% }
  [ -n "$missing" ] || return 0
  # fdbench does without Highway (its CPU kernels are then plain loops): no reason to stop where it takes the user's hand.
  if [ "$manager" != apt ] && [ "$(missing_packages name "$1")" = highway ]; then
    say "going on without Highway: the CPU kernels will be slower (package: $missing)"
    return 0
  fi
  case $manager in
    apt)
      # shellcheck disable=SC2086 # one word a package
      apt_install $missing
      left=$(missing_packages name "$1" | tr '\n' ' ')
      [ -z "$left" ] || die "still not found after installing $missing: $left"
      return 0
      ;;
    dnf) command="sudo dnf install $missing" ;;
    pacman) command="sudo pacman -S --needed $missing" ;;
    zypper) command="sudo zypper install $missing" ;;
    brew) command="brew install $missing" ;;
    none)
      die "missing, and no package manager that this script knows is here. Install the development files of: $missing"
      ;;
  esac
  die "missing. Only apt is used by itself; here, install with:
    $command
and start again."
}

# What CMake would say later, and less plainly.
check_versions() {
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  if [ "$(printf '%s\n3.22\n' "$version" | sort -V | head -n 1)" != 3.22 ]; then
    die "cmake is $version, fdbench needs 3.22 or newer (for one: python3 -m pip install cmake)"
  fi
  case $("$(cxx)" --version | head -n 1) in
    *clang*) ;;
    *)
      version=$("$(cxx)" -dumpversion)
      if [ "${version%%.*}" -lt 11 ]; then
        die "$(cxx) is GCC $version, fdbench needs GCC 11 or newer (C++20); name another compiler in CXX"
      fi
      ;;
  esac
}
