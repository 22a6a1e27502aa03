// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ablate/v1/access.pb.h"
#include "views/json.h"
#include "views/read.h"
#include "web/server/actions.h"
#include "web/server/routes.h"

namespace abl::web {
namespace {

using Json = nlohmann::ordered_json;
using views::Parameter;

constexpr const char* kAbout =
    "What runs, and what came of it. Answers are messages of the package `ablate.v1` as JSON, with the names "
    "of "
    "its fields. What has its zero or empty value is there; what can be absent is not `required`. 64-bit "
    "whole "
    "numbers, and numbers that are not finite, are texts. New fields may come, those that are there stay.";

/// "sweeps/*/table" is the sweep_table, "runs/*" the run, "runs" are the runs.
std::string operation_id(std::string_view path) {
  std::string id;
  for (std::size_t from = 0; from < path.size();) {
    const std::size_t end = std::min(path.find('/', from), path.size());
    const std::string_view segment = path.substr(from, end - from);
    if (segment == "*")
      id.pop_back();  // one of these
    else
      id += (id.empty() ? "" : "_") + std::string{segment};
    from = end + 1;
  }
  return id;
}

Json schema_of(const Parameter& parameter) {
  Json schema;
  if (parameter.number) {
    schema = {
        {"type", "integer"}, {"minimum", parameter.number->lowest}, {"maximum", parameter.number->highest}};
    if (parameter.number->otherwise) schema["default"] = *parameter.number->otherwise;
  } else {
    schema = {{"type", "string"}};
    if (parameter.needed) schema["minLength"] = 1;
    if (parameter.choices.empty())
      schema["pattern"] = R"(^[^\u0000-\u001f\u007f]*$)";  // as parse_target has it
    else
      schema["enum"] = parameter.choices;
  }
  if (!parameter.repeats) return schema;
  Json list{{"type", "array"}, {"items", std::move(schema)}};
  if (parameter.needed) list["minItems"] = 1;
  return list;
}

/// `in`: "path" or "query".
Json said_of(const Parameter& parameter, const char* in) {
  Json said{{"name", parameter.name}, {"in", in}, {"description", parameter.about}};
  if (parameter.needed) said["required"] = true;
  said["schema"] = schema_of(parameter);
  return said;
}

Json content(const char* type, Json schema) { return {{type, {{"schema", std::move(schema)}}}}; }
Json message(const std::string& name) {
  return content("application/json", {{"$ref", "#/components/schemas/" + name}});
}

/// What one address answers.
struct Address {
  std::string_view path;  ///< below /api/v1/
  std::string_view about;
  const Parameter* of;  ///< what the "*" is
  std::span<const Parameter> parameters;
  Json content;  ///< of 200, by type
  bool cached = true;
};

Json operation(const Address& address) {
  Json operation{{"operationId", operation_id(address.path)}, {"summary", address.about}};
  operation["parameters"] = Json::array();
  if (address.of) operation["parameters"].push_back(said_of(*address.of, "path"));
  for (const Parameter& parameter : address.parameters)
    operation["parameters"].push_back(said_of(parameter, "query"));
  Json& responses = operation["responses"];
  responses["200"] = {{"description", address.about}, {"content", address.content}};
  if (address.cached) {
    responses["200"]["headers"]["ETag"] = {{"description", "Of the content: send it as If-None-Match"},
                                           {"schema", {{"type", "string"}}}};
    responses["304"] = {{"description", "Nothing has changed since the answer with that ETag"}};
    responses["226"] = {{"description",
                         "With `A-IM: json-patch`: a JSON Patch from the answer that Delta-Base names to the "
                         "one that ETag names"},
                        {"content", content("application/json-patch+json", {{"type", "array"}})}};
  }
  if (address.path == kLogRead.path)
    responses["200"]["headers"]["X-Log-Bytes"] = {{"description", "How many bytes the log has in all"},
                                                  {"schema", {{"type", "integer"}, {"minimum", 0}}}};
  for (const char* status : {"400", "401", "403", "404", "429", "503"})
    if (std::string_view{status} != "404" || address.of || !address.parameters.empty())
      responses[status] = {{"$ref", fmt::format("#/components/responses/{}", status)}};
  responses["default"] = {{"description", "Another error"}, {"content", message("Error")}};
  return operation;
}

/// "/api/v1/sweeps/{sweep}/table".
std::string template_of(const Address& address) {
  std::string path = "/api/v1/" + std::string{address.path};
  if (const auto star = path.find('*'); star != std::string::npos)
    path.replace(star, 1, fmt::format("{{{}}}", address.of->name));
  return path;
}

/// What is read of a field: what is written, null, and a number where 64 bits are written as a string.
Json as_read(Json schema) {
  Json read;
  if (schema.contains("description")) read["description"] = schema.at("description");
  schema.erase("description");
  const bool is_long = schema.value("format", "").ends_with("int64");
  read["anyOf"] = {std::move(schema), Json{{"type", "null"}}};
  if (is_long) read["anyOf"].push_back({{"type", "integer"}});
  return read;
}

/// A request as clients write one: what is left out, or null, is unset, and no field is unknown.
Json request_of(const Json& schemas, const std::string& name) {
  const auto is_message = [&](const Json& schema) {
    if (!schema.contains("$ref")) return false;
    const auto ref = schema.at("$ref").get<std::string>();
    return schemas.at(ref.substr(ref.rfind('/') + 1)).value("type", "") == "object";
  };
  Json request = schemas.at(name);
  request.erase("required");
  for (auto& [_, property] : request.at("properties").items()) {
    Json& schema = property.value("type", "") == "array" ? property.at("items") : property;
    if (is_message(schema)) schema = {{"type", "object"}};
    property = as_read(std::move(property));
  }
  request["additionalProperties"] = false;
  return request;
}

/// What can be done: a method of a service, by its name.
Json action(const google::protobuf::MethodDescriptor& method, const Json& schemas) {
  Json operation{{"operationId", method.name()},
                 {"summary", "What the method of that name of the services does"}};
  operation["requestBody"] = {
      {"required", true},
      {"content", content("application/json", request_of(schemas, method.input_type()->name()))}};
  operation["responses"] = {
      {"200", {{"description", "Done"}, {"content", message(method.output_type()->name())}}},
      {"default", {{"description", "Not done, and why"}, {"content", message("Error")}}}};
  return operation;
}

Json errors() {
  Json responses;
  constexpr std::pair<const char*, const char*> kErrors[] = {
      {"400", "A parameter that is unknown, given twice, missing or out of bounds; too large an answer"},
      {"401", "No token or session, where they are wanted, or one that has ended"},
      {"403", "A Host, an Origin or a page of another site, which are not served"},
      {"404", "No such sweep, row or run: the message has the nearest name"},
      {"429", "Too many requests from one address: Retry-After says when to come back"},
      {"503", "Too much is under way: Retry-After says when to come back"}};
  for (const auto& [status, about] : kErrors)
    responses[status] = {{"description", about}, {"content", message("Error")}};
  return responses;
}

Json describe() {
  std::vector<const google::protobuf::Descriptor*> messages{ablate::v1::Caller::descriptor()};
  std::vector<Address> addresses;
  for (const views::Read* read : views::all_reads()) {
    messages.push_back(read->message());
    addresses.push_back(
        {read->path, read->about, read->of, read->parameters, message(read->message()->name())});
  }
  for (const TextRead* read : text_reads()) {
    Json types;
    for (const std::string_view type : read->types) types[std::string{type}]["schema"]["type"] = "string";
    addresses.push_back({read->path, read->about, read->of, read->parameters, std::move(types)});
  }
  addresses.push_back({"events", "What changes, as it does: Server-Sent Events, without an end", nullptr,
                       kEventsParameters, content("text/event-stream", {{"type", "string"}}), false});
  addresses.push_back({"schema",
                       "The JSON Schema of sweep files, of a scheduler's dashboard",
                       nullptr,
                       {},
                       content("application/json", {{"type", "object"}})});
  addresses.push_back({"whoami", "Who is signed in", nullptr, {}, message("Caller"), false});

  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const std::string offered : kOffered)
    methods.push_back(
        google::protobuf::DescriptorPool::generated_pool()->FindMethodByName("ablate.v1." + offered));
  for (const auto* method : methods) messages.push_back(method->output_type());
  Json document{{"openapi", "3.1.0"},
                {"info",
                 {{"title", "ablate"},
                  {"version", "1"},
                  {"description", kAbout},
                  {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
                // without TLS nobody signs in; a browser has a cookie of its own accord
                {"security", Json::array({Json::object(), Json{{"token", Json::array()}}})}};
  document["paths"]["/api"]["get"] = {
      {"operationId", "api"},
      {"summary", "This document"},
      {"responses",
       {{"200",
         {{"description", "OpenAPI 3.1"}, {"content", content("application/json", {{"type", "object"}})}}},
        {"default", {{"description", "An error"}, {"content", message("Error")}}}}}};
  std::ranges::sort(addresses, {}, &Address::path);
  for (const Address& address : addresses)
    document["paths"][template_of(address)]["get"] = operation(address);
  Json& components = document["components"];
  components["schemas"] = views::json_schemas(messages);
  std::vector<const google::protobuf::Descriptor*> requests;
  for (const auto* method : methods) requests.push_back(method->input_type());
  const Json schemas_of_requests = views::json_schemas(requests);
  for (const auto* method : methods)
    document["paths"]["/api/v1/actions/" + method->name()]["post"] = action(*method, schemas_of_requests);
  components["schemas"]["Error"] = {
      {"type", "object"},
      {"properties",
       {{"code", {{"type", "string"}, {"description", "gRPC's name of it: `NOT_FOUND`"}}},
        {"message", {{"type", "string"}}}}},
      {"required", {"code", "message"}}};
  components["responses"] = errors();
  components["securitySchemes"] = {
      {"token",
       {{"type", "http"}, {"scheme", "bearer"}, {"description", "A token of `ablate token create`"}}}};
  return document;
}

}  // namespace

const std::string& api_description() {
  static const std::string text = describe().dump(1) + "\n";
  return text;
}

}  // namespace abl::web
