# Configuring and building. Sourced by scripts/quickstart.sh and scripts/test.sh.

# As many compilers as cores, as far as the memory goes (1.5 GiB each). FDBENCH_JOBS overrides it.
build_jobs() {
  local cores memory
  cores=$(nproc 2>/dev/null || echo 1)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null)
  if [ -n "$memory" ] && [ "$memory" -lt "$cores" ]; then cores=$((memory > 1 ? memory : 1)); fi
  echo "${FDBENCH_JOBS:-$cores}"
}

# configure_and_build DIR [CMAKE ARGUMENTS...]: a Release build. A folder that is configured already keeps its generator.
configure_and_build() {
  local dir=$1 generator=()
  shift
  [ -f "$dir/CMakeCache.txt" ] || generator=(-G Ninja)
  cmake -S . -B "$dir" "${generator[@]}" "$@"
  cmake --build "$dir" --parallel "$(build_jobs)"
}
