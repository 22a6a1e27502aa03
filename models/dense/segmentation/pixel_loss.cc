// SPDX-License-Identifier: Apache-2.0
#include "models/dense/segmentation/pixel_loss.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "models/dense/every_machine.h"
#include "models/dense/segmentation/heads.h"

namespace abl::models {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kRows = 16;   // of pixels that are one piece of work
constexpr std::int64_t kLanes = 16;  // numbers that are computed at once; classes are filled up to a multiple
constexpr float kNever = -1e30F;     // the logit of what fills up

void check(const Tensor& logits, const Tensor& labels, const PixelLossOptions& options) {
  TORCH_CHECK_VALUE(logits.dim() == 4 && labels.dim() == 3 && logits.size(0) == labels.size(0) &&
                        !labels.is_floating_point(),
                    "logits of shape ", logits.sizes(), " and labels of shape ", labels.sizes(), " and type ",
                    labels.scalar_type(), "; [B, classes, h, w] and whole numbers [B, H, W] are expected");
  if (labels.numel() == 0 || labels.is_meta()) return;
  const auto valid = (labels >= 0).logical_and(labels < logits.size(1)).logical_or(labels == options.ignored);
  if (valid.all().item<bool>()) return;
  const auto wrong = labels.masked_select(valid.logical_not())[0].item<std::int64_t>();
  TORCH_CHECK_VALUE(false, "a pixel of label ", wrong, "; one of the ", logits.size(1), " classes, or ",
                    options.ignored, " for none, is expected");
}

/// Between which two places of a line a pixel lies, and how far from the first.
struct Between {
  std::int64_t low = 0, high = 0;
  float above = 0;
};

/// As PyTorch places them.
std::vector<Between> places(std::int64_t count, std::int64_t length, bool align_corners) {
  const auto scale = align_corners
                         ? (count > 1 ? static_cast<float>(length - 1) / static_cast<float>(count - 1) : 0.F)
                         : static_cast<float>(length) / static_cast<float>(count);
  std::vector<Between> found;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto pixel = static_cast<float>(i);
    const float place = align_corners ? scale * pixel : std::max(0.F, scale * (pixel + 0.5F) - 0.5F);
    const auto low = std::min(static_cast<std::int64_t>(place), length - 1);
    found.push_back({.low = low,
                     .high = std::min(low + 1, length - 1),
                     .above = std::clamp(place - static_cast<float>(low), 0.F, 1.F)});
  }
  return found;
}

/// eˣ for x at most 0, within 2 units in the last place; 0 where it is below 1e-38. Loops over it become
/// instructions of many numbers, which the library's function would not.
[[gnu::always_inline]] inline float exponential(float x) {
  const float bounded = std::max(x, -87.F);
  constexpr float kRound = 12582912.F;                            // 1.5 · 2^23 leaves no fraction
  const float whole = (bounded * 1.44269504F + kRound) - kRound;  // x = whole · ln 2 + rest
  const float rest = bounded - whole * 0.693359375F + whole * 2.12194440e-4F;
  float p = 1.9875691500e-4F;  // Cephes' polynomial, |rest| at most ln 2 / 2
  p = p * rest + 1.3981999507e-3F;
  p = p * rest + 8.3334519073e-3F;
  p = p * rest + 4.1665795894e-2F;
  p = p * rest + 1.6666665459e-1F;
  p = p * rest + 5.0000001201e-1F;
  const float of_rest = p * rest * rest + rest + 1.F;
  const auto power = std::bit_cast<float>((static_cast<std::int32_t>(whole) + 127) << 23);
  return x < -87.F ? 0.F : of_rest * power;
}

/// Some numbers at a time, each kept apart so that no order of a sum stands in the way.
struct Lanes {
  float lane[kLanes];

  explicit Lanes(float start) { std::fill_n(lane, kLanes, start); }
  float sum() const {
    float all = 0;
    for (const float one : lane) all += one;
    return all;
  }
  float largest() const { return *std::max_element(lane, lane + kLanes); }
};

/// One image: its logits [h, w, C], C a multiple of kLanes, and labels [H, W].
struct Image {
  const float* logits;
  const std::int64_t* labels;
  std::int64_t width, classes;  ///< width: of the logits
  std::int64_t ignored;
  const std::vector<Between>&rows, &columns;
};

/// Some rows of pixels. `gradient`: of the sum of their losses by the logits, rows `first` on of [h, w, C];
/// null: not asked for. `mixed`, `slope`: [w, C], `scores`: [C], to work in. Returns: the sum.
ABL_FOR_EVERY_MACHINE double losses_of_rows(const Image& image, std::int64_t from, std::int64_t to,
                                            std::int64_t first, float* gradient, float* mixed, float* slope,
                                            float* scores) {
  const auto C = image.classes, line = image.width * C;
  double sum = 0;
  for (auto y = from; y < to; ++y) {
    const auto& row = image.rows[static_cast<std::size_t>(y)];
    const float *low = image.logits + row.low * line, *high = image.logits + row.high * line;
    for (std::int64_t i = 0; i < line; ++i) mixed[i] = low[i] + row.above * (high[i] - low[i]);
    if (gradient) std::fill_n(slope, line, 0.F);
    for (std::size_t x = 0; x < image.columns.size(); ++x) {
      const auto label =
          image.labels[y * static_cast<std::int64_t>(image.columns.size()) + static_cast<std::int64_t>(x)];
      if (label == image.ignored) continue;
      const auto& column = image.columns[x];
      const float *left = mixed + column.low * C, *right = mixed + column.high * C;
      const float above = column.above;
      Lanes maxima{kNever}, sums{0};
      for (std::int64_t c = 0; c < C; c += kLanes)
        for (std::int64_t i = 0; i < kLanes; ++i) {
          const float score = left[c + i] + above * (right[c + i] - left[c + i]);
          scores[c + i] = score;
          maxima.lane[i] = std::max(score, maxima.lane[i]);
        }
      const float largest = maxima.largest(), own = scores[label] - largest;
      for (std::int64_t c = 0; c < C; c += kLanes)
        for (std::int64_t i = 0; i < kLanes; ++i) {
          scores[c + i] = exponential(scores[c + i] - largest);
          sums.lane[i] += scores[c + i];
        }
      const float total = sums.sum();
      sum += std::log(static_cast<double>(total)) - own;
      if (!gradient) continue;
      float *to_left = slope + column.low * C, *to_right = slope + column.high * C;
      const float share = 1.F / total;
      for (std::int64_t c = 0; c < C; ++c) scores[c] *= share;
      scores[label] -= 1.F;
      for (std::int64_t c = 0; c < C; ++c) to_left[c] += (1.F - above) * scores[c];
      for (std::int64_t c = 0; c < C; ++c) to_right[c] += above * scores[c];
    }
    if (!gradient) continue;
    float *to_low = gradient + (row.low - first) * line, *to_high = gradient + (row.high - first) * line;
    for (std::int64_t i = 0; i < line; ++i) to_low[i] += (1.F - row.above) * slope[i];
    for (std::int64_t i = 0; i < line; ++i) to_high[i] += row.above * slope[i];
  }
  return sum;
}

/// The sum of all losses, and where `gradient` is not null what it is by the logits [B, h, w, C]. Pieces of
/// work are cut the same for any number of threads, and added in their order.
double sum_of_losses(const Tensor& logits, const Tensor& labels, const PixelLossOptions& options,
                     float* gradient) {
  const auto B = logits.size(0), h = logits.size(1), w = logits.size(2), C = logits.size(3);
  const auto H = labels.size(1), W = labels.size(2), line = w * C;
  const auto rows = places(H, h, options.align_corners), columns = places(W, w, options.align_corners);
  const auto pieces = (H + kRows - 1) / kRows;
  std::vector<double> sums(static_cast<std::size_t>(B * pieces));
  std::vector<std::vector<float>> slopes(sums.size());
  const auto begin = [&](std::int64_t piece) { return rows[static_cast<std::size_t>(piece * kRows)].low; };
  at::parallel_for(0, B * pieces, 1, [&](std::int64_t some, std::int64_t end) {
    std::vector<float> work(static_cast<std::size_t>(2 * line + C));
    for (; some < end; ++some) {
      const auto b = some / pieces, piece = some % pieces;
      const auto from = piece * kRows, to = std::min(H, from + kRows);
      const Image image{.logits = logits.const_data_ptr<float>() + b * h * line,
                        .labels = labels.const_data_ptr<std::int64_t>() + b * H * W,
                        .width = w,
                        .classes = C,
                        .ignored = options.ignored,
                        .rows = rows,
                        .columns = columns};
      auto& slope = slopes[static_cast<std::size_t>(some)];
      const auto last = rows[static_cast<std::size_t>(to - 1)].high;
      if (gradient) slope.resize(static_cast<std::size_t>((last + 1 - begin(piece)) * line));
      sums[static_cast<std::size_t>(some)] =
          losses_of_rows(image, from, to, begin(piece), gradient ? slope.data() : nullptr, work.data(),
                         work.data() + line, work.data() + 2 * line);
    }
  });
  if (gradient)
    at::parallel_for(0, B, 1, [&](std::int64_t b, std::int64_t end) {
      for (; b < end; ++b)
        for (std::int64_t piece = 0; piece < pieces; ++piece) {
          const auto& slope = slopes[static_cast<std::size_t>(b * pieces + piece)];
          float* own = gradient + (b * h + begin(piece)) * line;
          for (std::size_t i = 0; i < slope.size(); ++i) own[i] += slope[i];
        }
    });
  double sum = 0;
  for (const double some : sums) sum += some;
  return sum;
}

/// What the sum is divided by.
double pixels_that_count(const Tensor& labels, const PixelLossOptions& options) {
  if (options.counts_ignored) return static_cast<double>(labels.numel());
  return static_cast<double>(labels.ne(options.ignored).sum().item<std::int64_t>());
}

struct MeanOfPixels : torch::autograd::Function<MeanOfPixels> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels,
                        const PixelLossOptions& options, bool trains) {
    const auto C = logits.size(1), fill = (C + kLanes - 1) / kLanes * kLanes - C;
    const auto filled =
        torch::constant_pad_nd(logits.detach().permute({0, 2, 3, 1}).to(torch::kFloat), {0, fill},
                               kNever)
            .contiguous();  // [B, h, w, C and what fills up]
    const auto whole = labels.to(torch::kLong).contiguous();
    const auto gradient = trains ? torch::zeros_like(filled) : Tensor{};
    double sum = 0, share = 1;
    if (!logits.is_meta()) {
      share /= std::max(1., pixels_that_count(labels, options));
      sum = sum_of_losses(filled, whole, options, trains ? gradient.data_ptr<float>() : nullptr);
    }
    if (trains) context->save_for_backward({gradient.mul_(share).narrow(3, 0, C).permute({0, 3, 1, 2})});
    context->saved_data["type"] = static_cast<std::int64_t>(logits.scalar_type());
    return torch::scalar_tensor(sum * share, filled.options());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto type = static_cast<torch::ScalarType>(context->saved_data["type"].toInt());
    const auto slope = context->get_saved_variables()[0];
    return {(slope * gradients[0]).to(type), {}, {}, {}};
  }
};

}  // namespace

Tensor pixel_loss(const Tensor& logits, const Tensor& labels, const PixelLossOptions& options) {
  if (!(logits.is_cpu() || logits.is_meta()) || logits.scalar_type() == torch::kDouble)
    return resized_pixel_loss(logits, labels, options);
  check(logits, labels, options);
  return MeanOfPixels::apply(logits, labels, options,
                             torch::GradMode::is_enabled() && logits.requires_grad());
}

Tensor resized_pixel_loss(const Tensor& logits, const Tensor& labels, const PixelLossOptions& options) {
  check(logits, labels, options);
  const auto exact = logits.scalar_type() == torch::kDouble ? logits : logits.to(torch::kFloat);
  const auto sum = torch::cross_entropy_loss(
      resize_map(exact, labels.size(1), labels.size(2), options.align_corners), labels.to(torch::kLong),
      /*weight=*/{}, at::Reduction::Sum, options.ignored);
  if (options.counts_ignored) return sum / labels.numel();
  return sum / labels.ne(options.ignored).sum().clamp_min(1);
}

}  // namespace abl::models
