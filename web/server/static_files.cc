// SPDX-License-Identifier: Apache-2.0
#include "web/server/static_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace abl::web {
namespace {

constexpr std::string_view kHtml = "text/html; charset=utf-8";

/// In index.html: what follows is empty there.
constexpr std::string_view kPlaceMark = R"(<meta name="ablate-place" content=")";

constexpr std::string_view kLeftOut = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>ablate</title></head>
<body><h1>ablate</h1>
<p>The dashboard's pages were left out of this build (ABLATE_WEB=OFF). Build with -DABLATE_WEB=ON to have them;
<code>ablate watch</code> and <code>ablate table</code> show the same in a terminal.</p>
<p>The API is here: <a href="/api/v1/sweeps">/api/v1/sweeps</a>, <a href="/api/v1/workers">/api/v1/workers</a>.</p>
</body></html>
)";

std::string_view type_of(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kTypes{{
      {".html", kHtml},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".json", "application/json"},
      {".yaml", "application/yaml"},
      {".webmanifest", "application/manifest+json"},
      {".woff2", "font/woff2"},
  }};
  const auto* type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return path.ends_with(t.first); });
  return type == kTypes.end() ? "application/octet-stream" : type->second;
}

bool is_page(const App& app, const Target& target) {
  return target.path.empty() || std::ranges::any_of(app.pages, [&](std::string_view page) {
           return match(page, target.path).has_value();
         });
}

/// index.html with the place in it, and so without the file's own ETag.
Answer page_answer(const EmbeddedFile& page, std::string_view place, int status) {
  Answer answer{
      .status = status, .type = std::string{kHtml}, .body = std::string{page.data}, .cache = "no-cache"};
  if (const auto at = answer.body.find(kPlaceMark); at != std::string::npos)
    answer.body.insert(at + kPlaceMark.size(), place);
  return answer;
}

}  // namespace

Answer static_answer(const App& app, const Target& target, bool wants_page, std::string_view place) {
  const auto files = app.files;
  const std::string wanted =
      is_page(app, target) ? "index.html" : fmt::format("{}", fmt::join(target.path, "/"));
  if (files.empty() && wanted == "index.html")
    return Answer{.type = std::string{kHtml}, .body = std::string{kLeftOut}};
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& f) { return f.path == wanted; });
  const auto page = std::ranges::find(files, "index.html", &EmbeddedFile::path);
  if (page != files.end() && file == page) return page_answer(*page, place, 200);
  if (file == files.end() && wants_page && page != files.end()) return page_answer(*page, place, 404);
  if (file == files.end()) return error_answer(Code::kNotFound, fmt::format("no page '/{}'", wanted));

  // what is under assets/ has its content's hash in its name: it never changes
  return Answer{
      .type = std::string{type_of(file->path)},
      .body = std::string{file->data},
      .cache = file->path.starts_with("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
      .headers = {{"ETag", std::string{file->etag}}},
      .brotli = file->brotli};
}

}  // namespace abl::web
