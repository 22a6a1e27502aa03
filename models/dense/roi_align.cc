// SPDX-License-Identifier: Apache-2.0
#include "models/dense/roi_align.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/custom_class.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>

#include "models/dense/boxes.h"
#include "models/dense/every_machine.h"

namespace abl::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kBlock = 64;  // channels whose sums stay in registers

/// The regions of some maps, and what the maps are.
struct Regions : torch::CustomClassHolder {
  RoiAlignOptions options;
  std::vector<double> scales;                    ///< of each level
  std::vector<std::vector<std::int64_t>> sizes;  ///< of each level: [B, C, H, W]
  torch::ScalarType type;                        ///< of the maps
  Tensor rois, levels;                           ///< [K, 5] in the type of sums, [K]
};

/// One axis of a region: bin i is the sum of weight[j] · line[j] over j from first[i] to first[i + 1].
template <class T>
struct Axis {
  std::vector<std::size_t> first = {0};
  std::vector<std::int64_t> line;
  std::vector<T> weight;

  Axis(T from, T to, std::int64_t bins, std::int64_t length, const RoiAlignOptions& options) {
    const T extent = options.aligned ? to - from : std::max(to - from, T{1}), bin = extent / bins;
    const bool is_finite = std::isfinite(from) && std::isfinite(extent);
    const auto samples = !is_finite            ? 0
                         : options.samples > 0 ? options.samples
                                               : static_cast<std::int64_t>(std::ceil(bin));
    for (std::int64_t i = 0; i < bins; ++i) {
      for (std::int64_t j = 0; j < samples; ++j)
        add(from + i * bin + (static_cast<T>(j) + T{0.5}) * bin / samples, length, T{1} / samples);
      first.push_back(line.size());
    }
  }

 private:
  /// A sample lies between two lines, and on the first or last where it is a little outside.
  void add(T place, std::int64_t length, T share) {
    if (!(place >= -1 && place <= static_cast<T>(length))) return;
    const T inside = std::clamp(place, T{0}, static_cast<T>(length - 1));
    const auto low = static_cast<std::int64_t>(inside);
    const T above = inside - static_cast<T>(low);
    add(low, (1 - above) * share);
    add(std::min(low + 1, length - 1), above * share);
  }
  /// Samples of a bin that share a line are one.
  void add(std::int64_t where, T share) {
    for (auto j = line.size(); j > first.back(); --j)
      if (line[j - 1] == where) {
        weight[j - 1] += share;
        return;
      }
    line.push_back(where);
    weight.push_back(share);
  }
};

template <class T>
struct Region {
  std::int64_t image, width, channels;  ///< width: of the map
  Axis<T> rows, columns;

  Region(const Regions& all, const T* roi, std::size_t level)
      : image{static_cast<std::int64_t>(roi[0])},
        width{all.sizes[level][3]},
        channels{all.sizes[level][1]},
        rows{axis(all, roi[2], roi[4], level, all.options.height, all.sizes[level][2])},
        columns{axis(all, roi[1], roi[3], level, all.options.width, width)} {}

 private:
  static Axis<T> axis(const Regions& all, T from, T to, std::size_t level, std::int64_t bins,
                      std::int64_t length) {
    const T scale = static_cast<T>(all.scales[level]), offset = all.options.aligned ? T{0.5} : T{0};
    return {from * scale - offset, to * scale - offset, bins, length, all.options};
  }
};

/// Calls body(bin, row, column, weight) for all places of all bins.
template <class T, class Begin, class Add, class End>
[[gnu::always_inline]] inline void for_bins(const Region<T>& region, Begin begin, Add add, End end) {
  const auto &rows = region.rows, &columns = region.columns;
  std::int64_t bin = 0;
  for (std::size_t p = 0; p + 1 < rows.first.size(); ++p)
    for (std::size_t q = 0; q + 1 < columns.first.size(); ++q, ++bin) {
      begin(bin);
      for (auto i = rows.first[p]; i < rows.first[p + 1]; ++i)
        for (auto j = columns.first[q]; j < columns.first[q + 1]; ++j)
          add((rows.line[i] * region.width + columns.line[j]) * region.channels,
              rows.weight[i] * columns.weight[j]);
      end(bin);
    }
}

/// Channels from `first` on of one region, `count` at most kBlock. map [H, W, C], out [bins, C].
template <class T, class In, class Out>
[[gnu::always_inline]] inline void pool_some(const Region<T>& region, const In* map, Out* out,
                                             std::int64_t first, std::int64_t count) {
  T sums[kBlock];
  for_bins(
      region,
      [&](std::int64_t) __attribute__((always_inline)) {
        for (std::int64_t c = 0; c < count; ++c) sums[c] = 0;
      },
      [&](std::int64_t place, T weight) __attribute__((always_inline)) {
        const In* values = map + place + first;
        for (std::int64_t c = 0; c < count; ++c) sums[c] += weight * static_cast<T>(values[c]);
      },
      [&](std::int64_t bin) __attribute__((always_inline)) {
        Out* values = out + bin * region.channels + first;
        for (std::int64_t c = 0; c < count; ++c) values[c] = static_cast<Out>(sums[c]);
      });
}

template <class T, class In, class Out>
[[gnu::always_inline]] inline void pool_all(const Region<T>& region, const In* map, Out* out) {
  std::int64_t first = 0;
  for (; first + kBlock <= region.channels; first += kBlock) pool_some(region, map, out, first, kBlock);
  if (first < region.channels) pool_some(region, map, out, first, region.channels - first);
}

/// The reverse way: gradients [bins, C] are added to those of the map, [H, W, C].
template <class T, class In>
[[gnu::always_inline]] inline void spread_some(const Region<T>& region, const In* gradients, T* map,
                                               std::int64_t first, std::int64_t count) {
  T given[kBlock];
  for_bins(
      region,
      [&](std::int64_t bin) __attribute__((always_inline)) {
        const In* values = gradients + bin * region.channels + first;
        for (std::int64_t c = 0; c < count; ++c) given[c] = static_cast<T>(values[c]);
      },
      [&](std::int64_t place, T weight) __attribute__((always_inline)) {
        T* values = map + place + first;
        for (std::int64_t c = 0; c < count; ++c) values[c] += weight * given[c];
      },
      [](std::int64_t) __attribute__((always_inline)){});
}

template <class T, class In>
[[gnu::always_inline]] inline void spread_block(const Region<T>& region, const In* gradients, T* map,
                                                std::int64_t first) {
  if (first + kBlock <= region.channels)
    spread_some(region, gradients, map, first, kBlock);
  else
    spread_some(region, gradients, map, first, region.channels - first);
}

using BFloat16 = c10::BFloat16;

ABL_FOR_EVERY_MACHINE void pool(const Region<float>& region, const float* map, float* out) {
  pool_all(region, map, out);
}
ABL_FOR_EVERY_MACHINE void pool(const Region<float>& region, const BFloat16* map, BFloat16* out) {
  pool_all(region, map, out);
}
void pool(const Region<float>& region, const std::uint8_t* map, float* out) { pool_all(region, map, out); }
void pool(const Region<double>& region, const double* map, double* out) { pool_all(region, map, out); }

ABL_FOR_EVERY_MACHINE
void spread(const Region<float>& region, const float* gradients, float* map, std::int64_t first) {
  spread_block(region, gradients, map, first);
}
ABL_FOR_EVERY_MACHINE
void spread(const Region<float>& region, const BFloat16* gradients, float* map, std::int64_t first) {
  spread_block(region, gradients, map, first);
}
void spread(const Region<double>& region, const double* gradients, double* map, std::int64_t first) {
  spread_block(region, gradients, map, first);
}

/// Region k, which must be of an image that is there.
template <class T>
Region<T> region_of(const Regions& all, std::int64_t k, std::size_t level) {
  const T* const roi = all.rois.const_data_ptr<T>() + 5 * k;
  TORCH_CHECK_VALUE(roi[0] >= 0 && roi[0] < static_cast<T>(all.sizes[level][0]), "region ", k,
                    " is of image ", roi[0], " in a batch of ", all.sizes[level][0]);
  return {all, roi, level};
}

template <class T, class In, class Out>
void pool_regions(const Regions& all, const std::vector<Tensor>& maps, const Tensor& out) {
  const auto* const levels = all.levels.const_data_ptr<std::int64_t>();
  const auto apart = out.numel() / std::max<std::int64_t>(1, out.size(0));  // elements of a region
  at::parallel_for(0, out.size(0), /*grain_size=*/1, [&](std::int64_t first, std::int64_t end) {
    for (auto k = first; k < end; ++k) {
      const auto level = static_cast<std::size_t>(levels[k]);
      const auto region = region_of<T>(all, k, level);
      const auto image = maps[level].numel() / maps[level].size(0);
      pool(region, maps[level].const_data_ptr<In>() + region.image * image,
           out.mutable_data_ptr<Out>() + k * apart);
    }
  });
}

/// Of one level. Each thread has channels of an image for itself and takes the regions in their order: sums
/// are the same for any number of threads.
template <class T, class In>
Tensor spread_regions(const Regions& all, const Tensor& gradients, std::size_t level) {
  const auto& size = all.sizes[level];
  const auto map =
      torch::empty(size, gradients.options().dtype(all.rois.scalar_type()), torch::MemoryFormat::ChannelsLast)
          .zero_();
  const auto blocks = (size[1] + kBlock - 1) / kBlock,
             image = map.numel() / std::max<std::int64_t>(1, size[0]);
  const auto apart = gradients.numel() / std::max<std::int64_t>(1, gradients.size(0));
  const auto* const levels = all.levels.const_data_ptr<std::int64_t>();
  const T* const rois = all.rois.const_data_ptr<T>();
  at::parallel_for(0, size[0] * blocks, /*grain_size=*/1, [&](std::int64_t first, std::int64_t end) {
    for (auto task = first; task < end; ++task)
      for (std::int64_t k = 0; k < gradients.size(0); ++k) {
        if (levels[k] != static_cast<std::int64_t>(level) || rois[5 * k] != static_cast<T>(task / blocks))
          continue;
        spread(region_of<T>(all, k, level), gradients.const_data_ptr<In>() + k * apart,
               map.mutable_data_ptr<T>() + task / blocks * image, task % blocks * kBlock);
      }
  });
  return map.to(all.type);
}

Tensor pooled(const Regions& all, const std::vector<Tensor>& maps) {
  const auto out_type = all.type == torch::kByte ? torch::kFloat : all.type;
  const auto out = torch::empty({all.rois.size(0), all.sizes[0][1], all.options.height, all.options.width},
                                torch::dtype(out_type).memory_format(torch::MemoryFormat::ChannelsLast));
  switch (all.type) {
    case torch::kFloat:
      pool_regions<float, float, float>(all, maps, out);
      break;
    case torch::kDouble:
      pool_regions<double, double, double>(all, maps, out);
      break;
    case torch::kBFloat16:
      pool_regions<float, BFloat16, BFloat16>(all, maps, out);
      break;
    default:
      pool_regions<float, std::uint8_t, float>(all, maps, out);
  }
  return out;
}

class PooledRegions : public torch::autograd::Function<PooledRegions> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList maps,
                        const c10::intrusive_ptr<Regions>& regions) {
    std::vector<Tensor> last;
    for (const auto& map : maps) last.push_back(map.contiguous(torch::MemoryFormat::ChannelsLast));
    context->saved_data["regions"] = c10::IValue::make_capsule(regions);
    return pooled(*regions, last);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto regions =
        c10::static_intrusive_pointer_cast<Regions>(context->saved_data["regions"].toCapsule());
    const auto of_bins = gradients[0].contiguous(torch::MemoryFormat::ChannelsLast);
    variable_list of_maps;
    for (std::size_t level = 0; level < regions->sizes.size(); ++level)
      of_maps.push_back(
          !context->needs_input_grad(level)   ? Tensor{}
          : regions->type == torch::kDouble   ? spread_regions<double, double>(*regions, of_bins, level)
          : regions->type == torch::kBFloat16 ? spread_regions<float, BFloat16>(*regions, of_bins, level)
                                              : spread_regions<float, float>(*regions, of_bins, level));
    of_maps.emplace_back();
    return of_maps;
  }
};

/// On the meta device, where what is counted is what comes and goes.
class ShapedRegions : public torch::autograd::Function<ShapedRegions> {
 public:
  static Tensor forward(AutogradContext* context, at::TensorList maps, std::int64_t regions,
                        std::int64_t height, std::int64_t width) {
    std::vector<std::vector<std::int64_t>> sizes;
    for (const auto& map : maps) sizes.push_back(map.sizes().vec());
    context->saved_data["sizes"] = sizes;
    return torch::empty({regions, maps[0].size(1), height, width}, maps[0].options(),
                        torch::MemoryFormat::ChannelsLast);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    variable_list all;
    for (const auto& sizes : context->saved_data["sizes"].to<std::vector<std::vector<std::int64_t>>>())
      all.push_back(torch::empty(sizes, gradients[0].options()));
    all.resize(all.size() + 3);  // of the numbers
    return all;
  }
};

bool has_loops(torch::ScalarType type) {
  return type == torch::kFloat || type == torch::kDouble || type == torch::kBFloat16 || type == torch::kByte;
}

void check(const Tensor& maps, const Tensor& rois, const RoiAlignOptions& options) {
  TORCH_CHECK_VALUE(maps.dim() == 4 && rois.dim() == 2 && rois.size(1) == 5, "maps ", maps.sizes(),
                    " and rois ", rois.sizes(), "; [B, C, H, W] and [K, 5] are expected");
  TORCH_CHECK_VALUE(maps.size(2) > 0 && maps.size(3) > 0, "maps of ", maps.size(2), " x ", maps.size(3),
                    "; expected at least 1 x 1");
  TORCH_CHECK_VALUE(options.height > 0 && options.width > 0 && options.samples >= 0, options.height, " x ",
                    options.width, " bins of ", options.samples,
                    " samples; positive numbers, or 0 samples, are expected");
}

/// On processors, regions of several levels.
Tensor pooled_by_loops(const std::vector<Tensor>& maps, const Tensor& rois, const Tensor& levels,
                       const std::vector<double>& scales, const RoiAlignOptions& options) {
  const auto type = maps[0].scalar_type();
  if (!has_loops(type)) {
    std::vector<Tensor> wide;
    for (const auto& map : maps) wide.push_back(map.to(torch::kFloat));
    return pooled_by_loops(wide, rois, levels, scales, options).to(type);
  }
  const auto regions = c10::make_intrusive<Regions>();
  regions->options = options;
  regions->scales = scales;
  regions->type = type;
  regions->rois = rois.detach().to(type == torch::kDouble ? torch::kDouble : torch::kFloat).contiguous();
  regions->levels = levels.contiguous();
  for (const auto& map : maps) {
    check(map, rois, options);
    TORCH_CHECK_VALUE(map.scalar_type() == type && map.size(1) == maps[0].size(1), "levels of types ", type,
                      " and ", map.scalar_type(), " and of ", maps[0].size(1), " and ", map.size(1),
                      " channels; the same are expected");
    regions->sizes.push_back(map.sizes().vec());
  }
  return PooledRegions::apply(at::TensorList{maps}, regions);
}

/// Lines [K, 2·bins·samples], weights alike: what Axis is of one region, of all at once, each sample two
/// lines.
struct Lines {
  Tensor line, weight;  ///< [K, bins, 2·samples]

  Lines(const Tensor& from, const Tensor& to, std::int64_t bins, std::int64_t length,
        const RoiAlignOptions& options) {
    const auto extent = options.aligned ? to - from : (to - from).clamp_min(1);  // [K]
    const auto bin = (extent / bins).view({-1, 1, 1});
    const auto samples = options.samples > 0 ? torch::full_like(bin, options.samples) : bin.ceil();
    const auto most = options.samples > 0
                          ? options.samples
                          : std::max<std::int64_t>(1, samples.nan_to_num(0).max().item<std::int64_t>());
    const auto i = torch::arange(bins, from.options()).view({1, -1, 1});
    const auto j = torch::arange(most, from.options());
    const auto place = from.view({-1, 1, 1}) + i * bin + (j + 0.5) * bin / samples;  // [K, bins, samples]
    const auto counts = (place >= -1).logical_and_(place <= length).logical_and_(j < samples);
    const auto inside = place.nan_to_num(0).clamp(0, length - 1), low = inside.floor(), above = inside - low;
    line = torch::cat({low, (low + 1).clamp_max_(length - 1)}, 2).to(torch::kLong);
    weight = torch::cat({1 - above, above}, 2) * (counts / samples.clamp_min(1)).repeat({1, 1, 2});
  }
};

}  // namespace

Tensor gathered_roi_align(const Tensor& maps, const Tensor& rois, double scale,
                          const RoiAlignOptions& options) {
  check(maps, rois, options);
  if (rois.size(0) == 0)
    return maps.sum() * 0 + maps.new_zeros({0, maps.size(1), options.height, options.width});
  const auto K = rois.size(0), B = maps.size(0), C = maps.size(1), H = maps.size(2), W = maps.size(3);
  const auto boxes = rois.detach().to(maps.options()) * scale - (options.aligned ? 0.5 : 0.);
  const Lines rows{boxes.select(1, 2), boxes.select(1, 4), options.height, H, options};
  const Lines columns{boxes.select(1, 1), boxes.select(1, 3), options.width, W, options};
  const auto image = rois.detach().select(1, 0).to(torch::kLong).view({K, 1, 1, 1, 1});
  const auto places =
      (image * H + rows.line.view({K, options.height, 1, -1, 1})) * W +
      columns.line.view({K, 1, options.width, 1, -1});  // [K, height, width, 2·samples, 2·samples]
  const auto weights =
      rows.weight.view({K, options.height, 1, -1, 1}) * columns.weight.view({K, 1, options.width, 1, -1});
  const auto bins = K * options.height * options.width;
  const auto vectors = maps.permute({0, 2, 3, 1}).reshape({B * H * W, C});
  const auto sums = std::get<0>(torch::embedding_bag(
      vectors, places.reshape({-1}), torch::arange(bins, places.options()) * (places.numel() / bins),
      /*scale_grad_by_freq=*/false, /*mode=*/0, /*sparse=*/false, weights.reshape({-1})));
  return sums.view({K, options.height, options.width, C}).permute({0, 3, 1, 2});
}

Tensor roi_align(const Tensor& maps, const Tensor& rois, double scale, const RoiAlignOptions& options) {
  check(maps, rois, options);
  if (maps.is_cpu())
    return pooled_by_loops({maps}, rois, torch::zeros({rois.size(0)}, torch::kLong), {scale}, options);
  const auto type = maps.scalar_type();
  const auto summed = type == torch::kDouble ? torch::kDouble : torch::kFloat;
  const auto out = gathered_roi_align(maps.to(summed), rois, scale, options);
  return type == torch::kByte ? out : out.to(type);
}

Tensor as_rois(const std::vector<Tensor>& boxes) {
  std::vector<Tensor> rois;
  for (const auto& some : boxes) {
    const auto image = static_cast<double>(rois.size());
    rois.push_back(torch::cat({torch::full({some.size(0), 1}, image, some.options()), some}, 1));
  }
  return torch::cat(rois);
}

Tensor pyramid_levels(const Tensor& boxes, const std::vector<std::int64_t>& strides) {
  constexpr double kSide = 224, kLevel = 4, kRoundedUp = 1e-6;
  const auto first = std::log2(static_cast<double>(strides.front()));
  const auto last = std::log2(static_cast<double>(strides.back()));
  const auto level = torch::floor(kLevel + torch::log2(torch::sqrt(box_areas(boxes)) / kSide) + kRoundedUp);
  return level.nan_to_num(first).clamp(first, last).sub(first).to(torch::kLong);
}

Tensor pyramid_roi_align(const std::vector<Tensor>& levels, const std::vector<std::int64_t>& strides,
                         const Tensor& rois, const RoiAlignOptions& options) {
  TORCH_CHECK_VALUE(!levels.empty() && levels.size() == strides.size(), "a pyramid of ", levels.size(),
                    " levels and ", strides.size(), " strides; a stride for each is expected");
  if (levels[0].is_meta())
    return ShapedRegions::apply(at::TensorList{levels}, rois.size(0), options.height, options.width);
  const auto of = pyramid_levels(rois.narrow(1, 1, 4), strides);
  std::vector<double> scales;
  for (const auto stride : strides) scales.push_back(1. / static_cast<double>(stride));
  if (levels[0].is_cpu()) return pooled_by_loops(levels, rois, of, scales, options);
  auto out =
      torch::zeros({rois.size(0), levels[0].size(1), options.height, options.width}, levels[0].options());
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const auto some = (of == static_cast<std::int64_t>(level)).nonzero().squeeze(1);
    out =
        out.index_copy(0, some, roi_align(levels[level], rois.index_select(0, some), scales[level], options));
  }
  return out;
}

}  // namespace abl::models
