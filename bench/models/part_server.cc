// SPDX-License-Identifier: Apache-2.0
// The C++ side of bench/models/bench.py.
//   part_server THREADS [cpu|cuda]    reads "PART DTYPE REPEATS" from stdin, runs forward and backward of
//   that part so often,
//                                     and answers with the seconds it took
//   part_server list                  says which parts there are
// A part or device that is not there: a line, and exit code 2.
#include <ATen/autocast_mode.h>
#include <torch/cuda.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <chrono>
#include <iostream>
#include <map>
#include <string>

#include "bench/models/parts.h"

namespace {

using abl::bench::Subject;

Subject made(const std::string& name, torch::Device device) {
  auto part = abl::bench::parts().at(name)();
  part.module->to(device);
  part.input = part.input.detach().to(device).requires_grad_();
  return part;
}

void wait_for(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize();
}

double seconds(Subject& part, bool lowered, int repeats) {
  const auto device = part.input.device();
  at::autocast::set_autocast_dtype(device.type(), torch::kBFloat16);
  wait_for(device);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    at::autocast::set_autocast_enabled(device.type(), lowered);
    const auto y = part.forward(part.input);
    at::autocast::set_autocast_enabled(device.type(), false);
    at::autocast::clear_cache();
    y.sum().backward();
  }
  wait_for(device);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int refuse(const std::string& what) {
  std::cerr << "part_server: " << what << '\n';
  return 2;
}

int list() {
  for (const auto& [name, make] : abl::bench::parts()) std::cout << name << '\n';
  return 0;
}

int serve(torch::Device device) {
  std::map<std::string, Subject> parts;
  std::string name, type;
  for (int repeats = 0; std::cin >> name >> type >> repeats;) {
    if (!abl::bench::parts().contains(name))
      return refuse("no part '" + name + "'; 'part_server list' says which there are");
    auto& part = parts[name];
    if (!part.module) part = made(name, device);
    std::cout << seconds(part, type == "bf16", repeats) << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "1", device = argc > 2 ? argv[2] : "cpu";
  if (first == "list") return list();
  if (first.empty() || first.find_first_not_of("0123456789") != std::string::npos)
    return refuse("'" + first + "' threads; a number, or the word list, is expected");
  if (device != "cpu" && device != "cuda") return refuse("device '" + device + "'; cpu or cuda is expected");
  if (device == "cuda" && !torch::cuda::is_available()) return refuse("device cuda, but there is none here");
  torch::set_num_threads(std::stoi(first));
  return serve(device == "cuda" ? torch::kCUDA : torch::kCPU);
}
