#!/usr/bin/env bash
# scripts/check_setup.sh on this machine, and on machines that are played: with a PATH of fakes, each that agrees with the
# others but for one.
#   check_setup.sh SOURCE_FOLDER
set -uo pipefail

script=$1/scripts/check_setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
complain() {
  echo "check_setup: $1"
  failed=$((failed + 1))
}

# This machine: a line for each part, in the form that a reader knows; what has a fault ends in 1.
said=$("$script" 2>&1)
code=$?
for part in compiler CMake Ninja toolkit Python ncu; do
  grep -qE "^(ok|none|missing|wrong) +$part +[^ ].{2,}" <<<"$said" || complain "says nothing of $part here: $said"
done
grep -qE '^(ok|none|missing|wrong) +(GPU|driver) ' <<<"$said" || complain "says nothing of the GPU here: $said"
if grep -qE '^(missing|wrong)' <<<"$said"; then expected=1; else expected=0; fi
[ "$code" -eq "$expected" ] || complain "exit code $code here, must be $expected: $said"

# Nothing of this machine but what the script itself is made of.
tools=$work/tools
mkdir "$tools"
for tool in bash sed grep sort head tail tr mktemp rm id dirname cat timeout; do ln -s "$(command -v "$tool")" "$tools/"; done
fake=$work/fake
root=$work/root

# fakes NAME: a program of standard input's lines.
fakes() {
  { echo '#!/bin/bash'; cat; } >"$fake/$1"
  chmod +x "$fake/$1"
}
compiler() { printf 'case $1 in -dump*) echo %s ;; *) %s ;; esac\n' "$1" "${2:-:}" | fakes g++; }
cmake_is() { echo "echo 'cmake version $1'" | fakes cmake; }
smi() { # CUDA'S LINE CAPABILITY
  fakes nvidia-smi <<END
case \$1 in
  --query*) echo "NVIDIA H100 80GB HBM3, 81559 MiB, $2" ;;
  *) echo "| NVIDIA-SMI 580.65   $1 |" ;;
esac
END
}
driver() { smi "Driver Version: 580.65   CUDA Version: $1" 9.0; }
smi_says() { printf 'echo "%s"; exit %s\n' "$1" "$2" | fakes nvidia-smi; }
nvcc_is() { # VERSION [CODES [WHAT A COMPILE DOES]]
  fakes nvcc <<END
case \$1 in
  --version) echo "Cuda compilation tools, release $1, V$1.88" ;;
  --list-gpu-code) printf 'sm_%s\n' ${2:-80 90 120} ;;
  *) ${3:-:} ;;
esac
END
}
torch_says() { printf 'case $* in *platform*) echo 3.11.2 ;; *) %s ;; esac\n' "$1" | fakes python3; }
machine() { # one where all is well
  rm -rf "$fake" "$root"
  mkdir -p "$fake" "$root"
  compiler 12.2.0
  cmake_is 3.25.1
  echo 'echo 1.11.1' | fakes ninja
  driver 13.0
  nvcc_is 13.0
  torch_says 'echo "torch: 2.15.0+cu130 13.0 yes sm_80 sm_90"'
  printf 'echo NVIDIA; echo "Version 2025.3.1.0 (build 1)"\n' | fakes ncu
}
# played WHAT EXIT_CODE PATTERN [OPTION]: on the machine as it is now; then the next one is well again.
played() {
  said=$(env -i PATH="$fake:$tools" ROOFTILE_PYTHON=python3 CUDA_HOME="$work/none" ROOFTILE_SETUP_ROOT="$root" ROOFTILE_SETUP_UID=1000 \
    "$script" ${4:+"$4"} 2>&1)
  code=$?
  if [ "$code" != "$2" ] || ! grep -qE "$3" <<<"$said"; then complain "$1: exit code $code, must be $2 with \"$3\": $said"; fi
  machine
}
card() {
  mkdir -p "$root/sys/bus/pci/devices/0"
  echo 0x10de >"$root/sys/bus/pci/devices/0/vendor"
  echo 0x030200 >"$root/sys/bus/pci/devices/0/class"
}

machine
played "all is well" 0 '^all that is needed' --gpu
[ "$(grep -c '^ok ' <<<"$said")" -eq 9 ] || complain "all is well, but not nine times: $said"
played "an option that is none" 2 'unknown option --cpu' --cpu

rm "$fake/g++"
played "no compiler" 1 '^missing +compiler +There is no g\+\+; scripts/install_packages'
compiler 9.4.0 'echo "fatal error: concepts: No such file"; exit 1'
played "an old compiler" 1 '^wrong +compiler +g\+\+ 9.4.0 does not compile C\+\+20 \(fatal error: concepts'
rm "$fake/cmake"
played "no CMake" 1 '^missing +CMake'
cmake_is 3.22.1
played "an old CMake" 1 '^wrong +CMake +CMake is 3.22.1, must be 3.25'
cmake_is 4.1.0
played "a new CMake" 0 '^ok +CMake +4.1.0'
rm "$fake/ninja"
played "no Ninja" 1 '^missing +Ninja'
[ "$(tail -n 1 <<<"$said")" = "1 of these must be mended" ] || complain "counts $(tail -n 1 <<<"$said")"

# Driver and toolkit that disagree.
driver 12.4
played "a driver older than the toolkit" 1 '^wrong +toolkit +nvcc is of CUDA 13.0, the driver of CUDA 12.4: its programs do not start; renew the driver, or install a toolkit of CUDA 12'
shown=$(grep -m 1 '^wrong  *toolkit ' "$1/docs/course/04_setup.md")
driver 12.4
played "what lesson 4 shows" 1 "^${shown//[()]/.}\$"
nvcc_is 13.10
driver 13.9
played "a driver of an earlier minor version" 0 '^ok +toolkit +nvcc 13.10. The driver is of CUDA 13.9: .*PTX.* does not'
nvcc_is 12.8
played "a toolkit older than the driver" 0 '^ok +toolkit +nvcc 12.8$'
smi 'KMD Version: 610.57   CUDA UMD Version: 13.3' 9.0
played "a newer nvidia-smi" 0 '^ok +driver +610.57, for CUDA 13.3'
smi 'Driver Version: 580.65   CUDA Version: 13.0' 12.1
nvcc_is 13.0 '80 90'
played "a GPU that the toolkit does not know" 1 '^wrong +toolkit +nvcc 13.0 makes no code for compute capability 12.1; it makes: sm_80 sm_90'
smi 'Driver Version: 580.65   CUDA Version: 13.0' 8.6
nvcc_is 13.0 '80 90'
played "a GPU that runs an earlier one's code" 0 '^ok +toolkit +nvcc 13.0$'
smi 'Driver Version: 580.65   CUDA Version: 13.0' 8.6
nvcc_is 13.0 '89 90'
played "a GPU that does not run a later one's code" 1 'no code for compute capability 8.6; it makes: sm_89 sm_90'
smi 'Driver Version: 580.65   CUDA Version: 13.0' 7.0
nvcc_is 13.0 '75 80'
played "a GPU that the toolkit has forgotten" 1 'no code for compute capability 7.0'
smi 'Driver Version: 580.65   CUDA Version: 13.0' 7.5
nvcc_is 13.0 '75 80'
torch_says 'echo "torch: 2.15.0+cu130 13.0 yes sm_75 sm_90"'
played "a GPU that is too old" 1 '^wrong +GPU +NVIDIA H100 80GB HBM3, 81559 MiB, compute capability 7.5: the library.s kernels need 8.0'
smi 'Driver Version: 580.65   CUDA Version: 13.0' '[N/A]'
played "a driver that does not say the compute capability" 0 '^ok +GPU +NVIDIA H100'
nvcc_is 13.0 '' 'echo "x.h:1: error: -- unsupported GNU version! gcc versions later than 15 are not supported!"; exit 1'
played "a compiler that nvcc refuses" 1 '^wrong +toolkit .*cannot compile an empty kernel .*unsupported GNU version.*NVCC_CCBIN'
nvcc_is 12.6
played "an old toolkit" 1 '^wrong +toolkit +nvcc is of CUDA 12.6, must be 12.8'
nvcc_is 'x'
played "an nvcc without a version" 1 '^wrong +toolkit .*does not say its version'

# No driver, or one that does not answer.
rm "$fake/nvidia-smi" "$fake/nvcc" "$fake/ncu"
played "a laptop" 0 '^none +GPU +There is no NVIDIA GPU here'
rm "$fake/nvidia-smi" "$fake/nvcc" "$fake/ncu"
played "a cloud machine without a GPU" 1 '^missing +GPU ' --gpu
rm "$fake/nvidia-smi" && card
played "a card without a driver" 1 '^missing +driver +There is an NVIDIA GPU and no driver'
rm "$fake/nvidia-smi" && card && touch "$root/.dockerenv"
played "a container that lacks --gpus" 1 '^missing +driver .*this container does not see it; start it with --gpus all'
smi_says 'Failed to initialize NVML: Driver/library version mismatch' 18
played "a driver that was renewed" 1 '^wrong +driver +the driver was renewed while it ran: start the machine again \(Failed'
smi_says "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver." 9
played "a module that is not loaded" 1 "^wrong +driver +the driver's module is not loaded"
smi_says 'No devices were found' 6
played "a driver without a GPU" 1 '^wrong +driver +the driver runs and sees no GPU'
smi_says '' 1
played "an nvidia-smi that says nothing" 1 '^wrong +driver .*no words'

# PyTorch.
torch_says "echo \"ModuleNotFoundError: No module named 'torch'\"; exit 1"
played "no PyTorch" 0 '^none +PyTorch +python3 has no PyTorch; scripts/install_baselines.sh --torch'
torch_says "echo \"ModuleNotFoundError: No module named 'torch'\"; exit 1"
played "no PyTorch on a cloud machine" 1 '^missing +PyTorch' --gpu
torch_says 'echo "ImportError: libcudart.so.13: cannot open"; exit 1'
played "a PyTorch that is broken" 1 '^wrong +PyTorch .*cannot import it \(ImportError: libcudart'
torch_says 'echo "torch: 2.15.0+cpu none no"'
played "a PyTorch without CUDA" 1 '^wrong +PyTorch +2.15.0\+cpu was built for the CPU alone'
torch_says 'echo "torch: 2.15.0+cu130 13.0 no"'
driver 12.4
nvcc_is 12.9
played "a PyTorch newer than the driver" 1 '^wrong +PyTorch .* is of CUDA 13.0, the driver of CUDA 12.4: renew'
torch_says 'echo "torch: 2.15.0+cu130 13.0 no"'
played "a PyTorch that does not see the GPU" 1 '^wrong +PyTorch .*does not see the GPU.*CUDA_VISIBLE_DEVICES'
torch_says 'echo "torch: 2.15.0+cu130 13.0 yes sm_100 sm_120"'
played "a PyTorch without the GPU's code" 1 '^wrong +PyTorch .*no code for compute capability 9.0, it holds: sm_100 sm_120'
torch_says 'echo "torch: 2.15.0+cu130 13.0 yes sm_75 sm_90a"'
played "a PyTorch with code for this architecture alone" 0 '^ok +PyTorch +2.15.0\+cu130, of CUDA 13.0, on the GPU'
rm "$fake/python3"
played "no Python" 1 '^missing +Python'
echo 'echo 3.9.2' | fakes python3
played "an old Python" 1 '^wrong +Python +python3 is 3.9.2, must be 3.10'

# Nsight Compute.
mkdir -p "$root/proc/driver/nvidia"
echo 'RmProfilingAdminOnly: 1' >"$root/proc/driver/nvidia/params"
played "counters for root alone" 1 '^wrong +ncu .*may not read .*NVreg_RestrictProfilingToAdminUsers=0'
echo 'exit 1' | fakes ncu
played "an ncu that does not run" 1 '^wrong +ncu .*does not say its version'

[ "$failed" -eq 0 ] && echo "check_setup: ok"
[ "$failed" -eq 0 ]
