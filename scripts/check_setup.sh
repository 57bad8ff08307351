#!/usr/bin/env bash
# Says what this machine has of what the course uses, a line for each part: ok, none (not needed on a laptop), or missing
# and wrong, with what to do. Changes nothing.
#   scripts/check_setup.sh          the CPU's half must be there; a GPU's parts may be absent, but not contradict each other
#   scripts/check_setup.sh --gpu    the GPU's half must be there, too: for a cloud machine
# ROOFTILE_PYTHON names the Python that is asked for PyTorch (build/baselines-venv's, else python3), CUDA_HOME the toolkit.
# Exit code: 0 all that must be there is, 1 something is missing or wrong, 2 unknown option.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

gpu_needed=
case ${1:-} in
  --gpu) gpu_needed=yes ;;
  '') ;;
  *)
    echo "check_setup.sh: unknown option $1; it takes --gpu or nothing" >&2
    exit 2
    ;;
esac

root=${ROOFTILE_SETUP_ROOT:-} # where /proc, /sys and /dev are looked for: the test's own
problems=0
say() { printf '%-8s %-9s %s\n' "$1" "$2" "$3"; }
bad() {
  say "$@"
  problems=$((problems + 1))
}
absent() { # PART SENTENCE: of a GPU's half
  if [ -n "$gpu_needed" ]; then bad missing "$@"; else say none "$@"; fi
}
soon() { # a command that may hang
  if command -v timeout >/dev/null; then timeout 60 "$@"; else "$@"; fi
}
older() { # VERSION THAN: 12.10 is not older than 12.9
  [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}
covers() { # "sm_80 sm_90" 8.6: code of the same major version and no later minor one runs
  local code
  for code in $1; do
    code=${code#sm_}
    code=${code%[af]}
    if [[ $code =~ ^[0-9]{2,}$ ]] && [ "${code%?}" = "${2%%.*}" ] && [ "${code: -1}" -le "${2#*.}" ]; then return 0; fi
  done
  return 1
}
first_line() { grep -m 1 . <<<"$1"; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
install="scripts/install_packages.sh installs it on Debian and Ubuntu"
in_container=
if [ -e "$root/.dockerenv" ] || [ -e "$root/run/.containerenv" ]; then in_container=yes; fi

# ---- The CPU's half

compiler=${CXX:-g++}
if ! command -v "$compiler" >/dev/null; then
  bad missing compiler "There is no $compiler; $install."
else
  version=$("$compiler" -dumpfullversion 2>/dev/null || "$compiler" -dumpversion 2>/dev/null)
  printf '#include <version>\n#include <concepts>\ntemplate <class T> concept C = std::integral<T>;\nstatic_assert(C<int>);\n' \
    >"$scratch/a.cpp"
  if said=$("$compiler" -std=c++20 -c "$scratch/a.cpp" -o "$scratch/a.o" 2>&1); then
    say ok compiler "$compiler $version"
  else
    bad wrong compiler "$compiler $version does not compile C++20 ($(first_line "$said")); install g++ 12 or newer, or name one by CXX."
  fi
fi

if ! version=$(cmake --version 2>/dev/null); then
  bad missing CMake "There is no cmake; $install."
elif version=$(sed -nE '1s/[^0-9]*([0-9]+(\.[0-9]+)+).*/\1/p' <<<"$version") && older "$version" 3.25; then
  bad wrong CMake "CMake is $version, must be 3.25 or newer; python3 -m pip install cmake brings a new one."
else
  say ok CMake "$version"
fi
if version=$(ninja --version 2>/dev/null); then
  say ok Ninja "$version"
else
  bad missing Ninja "There is no ninja; $install."
fi

# ---- The GPU and its driver

has_gpu='' driver_cuda='' capabilities=''
smi=$(command -v nvidia-smi || command -v /usr/lib/wsl/lib/nvidia-smi || true)
card=$(grep -lis 0x10de "$root"/sys/bus/pci/devices/*/vendor 2>/dev/null | while read -r vendor; do
  grep -lis '^0x03' "${vendor%/vendor}/class"
done | head -n 1)
if [ -z "$smi" ]; then
  if [ -z "$card" ]; then
    absent GPU "There is no NVIDIA GPU here; the emulated device runs the course's kernels on the CPU, a cloud machine on a GPU (lesson 4)."
  elif [ -n "$in_container" ]; then
    bad missing driver "The machine has an NVIDIA GPU, this container does not see it; start it with --gpus all, on a host that has nvidia-container-toolkit."
  else
    bad missing driver "There is an NVIDIA GPU and no driver (no nvidia-smi); install your distribution's nvidia-driver package, and start the machine again."
  fi
elif ! said=$(soon "$smi" 2>&1) || ! grep -qE 'CUDA( UMD)? Version' <<<"$said"; then
  case $said in
    *mismatch*) what="the driver was renewed while it ran: start the machine again" ;;
    *"couldn't communicate"* | *"could not communicate"*) what="the driver's module is not loaded: start the machine again; if that does not help, install the driver for this kernel anew" ;;
    *"No devices"*) what="the driver runs and sees no GPU: a container needs --gpus all, a virtual machine a GPU that is passed to it" ;;
    '') what="it said nothing within a minute: start the machine again" ;;
    *) what="see what nvidia-smi says" ;;
  esac
  bad wrong driver "$what ($(first_line "${said:-no words}"))."
else
  has_gpu=yes
  driver_cuda=$(sed -nE 's/.*CUDA( UMD)? Version: *([0-9]+\.[0-9]+).*/\2/p' <<<"$said" | head -n 1)
  say ok driver "$(sed -nE 's/.*(Driver|KMD) Version: *([0-9.]+).*/\2/p' <<<"$said" | head -n 1), for CUDA $driver_cuda and before"
  if ! gpus=$("$smi" --query-gpu=name,memory.total,compute_cap --format=csv,noheader 2>/dev/null); then
    gpus=$("$smi" --query-gpu=name,memory.total --format=csv,noheader 2>/dev/null) # older drivers know no compute_cap
  fi
  while IFS=, read -r name memory capability; do
    [ -n "$name" ] || continue
    what="$name,$memory${capability:+, compute capability$capability}"
    if [[ $capability =~ ([0-9]+\.[0-9]+) ]] && capabilities+=" ${BASH_REMATCH[1]}" && older "${BASH_REMATCH[1]}" 8.0; then
      bad wrong GPU "$what: the library's kernels need 8.0 or newer; PyTorch and lesson 6 may run, the emulated device does."
    else
      say ok GPU "$what"
    fi
  done <<<"$gpus"
fi

# ---- The toolkit

toolkit_folder=${CUDA_HOME:-/usr/local/cuda}/bin
nvcc=$(command -v nvcc || command -v "$toolkit_folder/nvcc" || true)
if [ -z "$nvcc" ]; then
  absent toolkit "There is no nvcc, on PATH or in $toolkit_folder; the CUDA Toolkit brings it. Only lessons that build for a GPU need it."
elif ! toolkit=$("$nvcc" --version 2>/dev/null | sed -nE 's/.*release ([0-9]+\.[0-9]+).*/\1/p') || [ -z "$toolkit" ]; then
  bad wrong toolkit "$nvcc does not say its version ($(first_line "$("$nvcc" --version 2>&1)")); install the CUDA Toolkit anew."
else
  printf '__global__ void nothing() {}\nint main() { nothing<<<1, 1>>>(); }\n' >"$scratch/a.cu"
  if ! said=$(soon "$nvcc" -c "$scratch/a.cu" -o "$scratch/a.o" 2>&1); then
    bad wrong toolkit "$nvcc $toolkit cannot compile an empty kernel ($(grep -m 1 -i error <<<"$said" || first_line "$said")); if it is the host compiler's version, name an older one by NVCC_CCBIN."
  elif older "$toolkit" 12.8; then
    bad wrong toolkit "nvcc is of CUDA $toolkit, must be 12.8 or newer; install a newer CUDA Toolkit."
  elif [ -n "$driver_cuda" ] && older "${driver_cuda%%.*}" "${toolkit%%.*}"; then
    bad wrong toolkit "nvcc is of CUDA $toolkit, the driver of CUDA $driver_cuda: its programs do not start; renew the driver, or install a toolkit of CUDA ${driver_cuda%%.*} (12.8 or newer)."
  elif [ -n "$driver_cuda" ] && older "$driver_cuda" "$toolkit"; then
    say ok toolkit "nvcc $toolkit. The driver is of CUDA $driver_cuda: code for this GPU runs, PTX (compute_…) does not; name the GPU by -arch=sm_…, or renew the driver."
  else
    say ok toolkit "nvcc $toolkit$(command -v nvcc >/dev/null || echo ". It is not on PATH; in each new terminal: export PATH=${nvcc%/nvcc}:\$PATH")"
  fi
  codes=$("$nvcc" --list-gpu-code 2>/dev/null)
  for capability in $capabilities; do
    [ -z "$codes" ] || covers "$codes" "$capability" ||
      bad wrong toolkit "nvcc $toolkit makes no code for compute capability $capability; it makes: $(tr '\n' ' ' <<<"$codes" | sed 's/ $//'). Install a toolkit that does."
  done
fi

# ---- PyTorch

python=${ROOFTILE_PYTHON:-}
if [ -z "$python" ]; then
  python=python3
  [ ! -x build/baselines-venv/bin/python ] || python=build/baselines-venv/bin/python
fi
if ! command -v "$python" >/dev/null; then
  bad missing Python "There is no $python; install Python 3.10 or newer, or name one by ROOFTILE_PYTHON."
else
  version=$("$python" -c 'import platform; print(platform.python_version())' 2>&1)
  if older "$version" 3.10; then
    bad wrong Python "$python is $version, must be 3.10 or newer; name another by ROOFTILE_PYTHON."
  else
    say ok Python "$version, $python"
  fi
  said=$(soon "$python" -W ignore -c '
import torch
cuda = torch.cuda.is_available()
print("torch:", torch.__version__, torch.version.cuda or "none", "yes" if cuda else "no", *(torch.cuda.get_arch_list() if cuda else []))
' 2>&1)
  IFS=' ' read -r label version cuda available archs <<<"$(grep -m 1 '^torch: ' <<<"$said")"
  if [ "$label" != torch: ]; then
    case $said in
      *"No module named 'torch'"*) absent PyTorch "$python has no PyTorch; scripts/install_baselines.sh --torch makes one in build/baselines-venv. Only lessons with PyTorch or Triton need it." ;;
      *) bad wrong PyTorch "$python cannot import it ($(grep . <<<"${said:-it took longer than a minute}" | tail -n 1)); install it anew: scripts/install_baselines.sh --torch." ;;
    esac
  elif [ -z "$has_gpu" ]; then
    say ok PyTorch "$version, on the CPU"
  elif [ "$cuda" = none ]; then
    bad wrong PyTorch "$version was built for the CPU alone, and there is a GPU; install the build with CUDA: $python -m pip install --force-reinstall torch."
  elif [ "$available" = no ]; then
    if [ -n "$driver_cuda" ] && older "${driver_cuda%%.*}" "${cuda%%.*}"; then
      bad wrong PyTorch "$version is of CUDA $cuda, the driver of CUDA $driver_cuda: renew the driver, or install a PyTorch of CUDA ${driver_cuda%%.*}."
    else
      bad wrong PyTorch "$version does not see the GPU that nvidia-smi sees; is CUDA_VISIBLE_DEVICES set (\"${CUDA_VISIBLE_DEVICES-}\")? $python -c 'import torch; torch.cuda.init()' says why."
    fi
  else
    say ok PyTorch "$version, of CUDA $cuda, on the GPU"
    for capability in $capabilities; do
      [ -z "$archs" ] || covers "$archs" "$capability" ||
        bad wrong PyTorch "$version holds no code for compute capability $capability, it holds: $archs. Install a version that does."
    done
  fi
fi

# ---- Nsight Compute

ncu=$(command -v ncu || command -v "${ROOFTILE_CUDA_TOOLS:-$toolkit_folder}/ncu" || command -v "$toolkit_folder/ncu" || true)
if [ -z "$ncu" ]; then
  absent ncu "There is no ncu (Nsight Compute), on PATH or in $toolkit_folder; the CUDA Toolkit brings it. Only rooftile profile needs it."
else
  version=$(soon "$ncu" --version 2>/dev/null | sed -nE 's/^Version ([0-9.]+).*/\1/p')
  if [ -z "$version" ]; then
    bad wrong ncu "$ncu does not say its version ($(first_line "$("$ncu" --version 2>&1)")); install Nsight Compute anew."
  elif [ -n "$has_gpu" ] && grep -qs '^RmProfilingAdminOnly: 1' "$root/proc/driver/nvidia/params" && [ "${ROOFTILE_SETUP_UID:-$(id -u)}" -ne 0 ]; then
    bad wrong ncu "$version may not read the GPU's counters: the driver keeps them for root. Use sudo, or put \"options nvidia NVreg_RestrictProfilingToAdminUsers=0\" into /etc/modprobe.d/ and start again; a container needs --cap-add=SYS_ADMIN."
  else
    say ok ncu "$version"
  fi
fi

if [ "$problems" -eq 0 ]; then
  echo "all that is needed here is there"
else
  echo "$problems of these must be mended"
  exit 1
fi
