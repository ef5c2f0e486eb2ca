"""A small stand-in for libnvidia-ml, compiled by the test, so pynvml's own ctypes path runs.

The stub has two cards. What it does is told by environment variables that it reads at
each call: ``STUB_NVML_INIT`` (error number of nvmlInit), ``STUB_NVML_LOST_AFTER`` (memory
calls answered before every card is lost), ``STUB_NVML_LOST_CARD`` (one card that is lost),
``STUB_NVML_BARE`` (only names and memory are supported).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned gpu, memory; } rates_t;
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; }
    pci_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
static int calls, opened;
static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}
#define BARE if (getenv("STUB_NVML_BARE")) return 3
static int card(void *handle) { return (int)(long)handle - 100; }
int nvmlInitWithFlags(unsigned flags) {
    int code = number("STUB_NVML_INIT", 0);
    if (!code) opened++;
    return code;
}
int nvmlShutdown(void) { opened--; fprintf(stderr, "shutdown %d\n", opened); return 0; }
const char *nvmlErrorString(int code) { return "stub error"; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if ((int)index == number("STUB_NVML_LOST_CARD", -1)) return 15;
    *handle = (void *)(long)(100 + index);
    return 0;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size) { BARE; strcpy(text, "570.1"); return 0; }
int nvmlDeviceGetName(void *handle, char *text, unsigned size) {
    strcpy(text, card(handle) ? "NVIDIA GeForce RTX 3060" : "NVIDIA GeForce RTX 4070");
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, memory_t *memory) {
    if (calls++ >= number("STUB_NVML_LOST_AFTER", 1000000)) return 15;
    memory->total = 12ull << 30; memory->used = 3ull << 30; memory->free = 9ull << 30;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, rates_t *rates) {
    BARE; rates->gpu = 62; rates->memory = 5; return 0;
}
int nvmlDeviceGetPciInfo_v3(void *handle, pci_t *pci) {
    BARE; sprintf(pci->bus_id, "00000000:0%d:00.0", card(handle) + 1); return 0;
}
int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *celsius) {
    BARE; *celsius = 61; return 0;
}
int nvmlDeviceGetDisplayActive(void *handle, unsigned *active) {
    BARE; *active = card(handle) == 0; return 0;
}
int nvmlDeviceGetCurrPcieLinkGeneration(void *handle, unsigned *value) {
    BARE; *value = 4; return 0;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *handle, unsigned *value) { BARE; *value = 16; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *bits) {
    BARE; *bits = 0x1 | 0x4 | 0x20; return 0;
}
static int processes(process_t *list, unsigned *count, unsigned with_own) {
    unsigned n = with_own ? 2 : 1, had = *count;
    *count = n;
    if (had < n) return 7;
    memset(list, 0, n * sizeof *list);
    list[0].pid = 4242; list[0].used = 1ull << 30;
    if (with_own) { list[1].pid = (unsigned)getpid(); list[1].used = 2ull << 30; }
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process_t *list) {
    BARE; return processes(list, count, 1);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned *count, process_t *list) {
    BARE; return processes(list, count, 0);
}
"""

#: Reads the meter as often as asked; prints one JSON list of what came back.
READER = """
import dataclasses, json, sys
from moelauncher.core.errors import LauncherError
from moelauncher.meters.nvml import NvmlMeter
meter = NvmlMeter(lambda pid: f"program {pid}")
answers = []
for _ in range(int(sys.argv[1])):
    try:
        answers.append([dataclasses.asdict(reading) for reading in meter.read()])
    except LauncherError as error:
        answers.append({"message": error.message, "hint": error.hint, "details": error.details})
meter.close()
meter.close()
print(json.dumps(answers))
"""


def build_stub(folder: Path) -> Path:
    """Compile the stub as ``folder/libnvidia-ml.so.1``; returns ``folder``."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler, "a C compiler is needed (Debian: apt install gcc)"
    source = folder / "nvml_stub.c"
    source.write_text(SOURCE, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-w", "-o", str(folder / "libnvidia-ml.so.1")]
    subprocess.run([*command, str(source)], check=True, timeout=240)
    return folder


def read_through_nvml(folder: Path, n_reads: int, **environment: str) -> tuple[list[object], str]:
    """What :class:`NvmlMeter` says in a process that finds the libraries of ``folder``."""
    done = subprocess.run(
        [sys.executable, "-c", READER, str(n_reads)],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr
