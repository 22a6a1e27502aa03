// SPDX-License-Identifier: Apache-2.0
// A driver's library with two GPUs, the second of which refuses what is asked of it, and a part of one, which
// knows its memory alone, as MIG's do.
#include <cstring>

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

static int devices[3];

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  if (index > 1) return 2;
  *device = &devices[index];
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strcmp(uuid, "GPU-0") == 0)
    *device = &devices[0];
  else if (std::strcmp(uuid, "MIG-0") == 0)
    *device = &devices[2];
  else
    return 6;
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* device, unsigned int* rates) {
  if (device != &devices[0]) return 3;
  rates[0] = 87, rates[1] = 5;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  if (device == &devices[1]) return 3;
  memory[0] = 80, memory[1] = 60, memory[2] = 20;
  return 0;
}

}  // extern "C"
