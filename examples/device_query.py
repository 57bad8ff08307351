"""What PyTorch says of the GPUs here; lesson 5 tells what it means. Without a GPU it says why there is none."""

import sys

import torch


# [query]
def query(device):
    p = torch.cuda.get_device_properties(device)
    print(f"device {device}: {p.name}, compute capability {p.major}.{p.minor}")
    print(f"  multiprocessors  {p.multi_processor_count}, each {p.max_threads_per_multi_processor} threads, "
          f"{p.regs_per_multiprocessor} registers, {p.shared_memory_per_multiprocessor >> 10} KiB of shared memory")
    print(f"  a block          {p.max_threads_per_block} threads, {p.shared_memory_per_block >> 10} KiB of shared memory, "
          f"{p.shared_memory_per_block_optin >> 10} if the kernel opts in")
    free, total = torch.cuda.mem_get_info(device)
    print(f"  memory           {total >> 20} MiB, {free >> 20} free; L2 {p.L2_cache_size >> 20} MiB")
    print(f"  code for it      {'sm_%d%d' % (p.major, p.minor)}; this PyTorch holds {' '.join(torch.cuda.get_arch_list())}")
# [/query]


if __name__ == "__main__":
    print(f"PyTorch {torch.__version__}, of CUDA {torch.version.cuda}")
    if not torch.cuda.is_available():
        try:
            torch.cuda.init()
            why = "no device is visible"
        except (RuntimeError, AssertionError) as error:
            why = str(error).splitlines()[0]
        sys.exit(f"device_query: no GPU: {why}")
    for device in range(torch.cuda.device_count()):
        query(device)
