# A container with all that `make build` needs, for the course without a GPU: Debian 12, on which continuous integration
# tests. The repository is mounted, not copied:
#   docker build -t rooftile .
#   docker run --rm -it -v "$PWD":/rooftile rooftile
# With a GPU (the host's driver and NVIDIA's container toolkit), pass an image of Debian or Ubuntu whose tag says devel, which has
# nvcc, as --build-arg IMAGE=…, and run with --gpus all.
ARG IMAGE=debian:12
FROM ${IMAGE}
ENV DEBIAN_FRONTEND=noninteractive
COPY scripts/install_packages.sh /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates gdb git make python3 \
 && /tmp/install_packages.sh \
 && rm -rf /var/lib/apt/lists/* /tmp/install_packages.sh
WORKDIR /rooftile
ENV PATH=/rooftile/build/release/bin:$PATH
CMD ["bash"]
