// SPDX-License-Identifier: Apache-2.0
#include "views/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "ablate/v1/compare.pb.h"
#include "ablate/v1/runs.pb.h"
#include "ablate/v1/sweeps.pb.h"
#include "ablate/v1/tables.pb.h"
#include "ablate/v1/workers.pb.h"
#include "base/error.h"

namespace abl::views {
namespace {

namespace v1 = ablate::v1;

// proto/typescript.cc says the same as types, views/json_schema.cc as schemas, and
// web/app/src/contract.test.ts has the same texts.

TEST(Json, NumbersThatAreNotFiniteAndThoseOf64BitsAreTexts) {
  v1::CellRun run;
  run.set_run(7);
  run.set_seed(-3);
  run.set_value(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(to_json(run), R"({"run":7,"trial":0,"seed":"-3","value":"NaN","not_finite":0,"packed_with":0})");
  run.set_value(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_json(run),
            R"({"run":7,"trial":0,"seed":"-3","value":"-Infinity","not_finite":0,"packed_with":0})");
}

TEST(Json, EmptyListsAndZerosAreThereAndWhatIsUnsetIsNot) {
  EXPECT_EQ(
      to_json(v1::Cell{}),
      R"({"n":0,"of":0,"text":"","paper":"","paper_mark":"","paper_why":"","missing":"","diverged":[],"runs":[],"unfilled":0,)"
      R"("packed":0,"before_mend":0,"imported":0,"row":"","settled":0,"paper_difference":""})");
  v1::Cell compared;
  compared.set_mean(1);
  compared.mutable_comparison()->set_best(true);
  EXPECT_EQ(
      to_json(compared),
      R"({"n":0,"of":0,"text":"","paper":"","paper_mark":"","paper_why":"","missing":"","diverged":[],"runs":[],"unfilled":0,)"
      R"("packed":0,"before_mend":0,)"
      R"("comparison":{"verdict":"VERDICT_UNSPECIFIED","why":"","best":true,"best_why":"",)"
      R"("second":false,"family":0},"imported":0,"row":"","settled":0,"paper_difference":"","mean":1})");
  v1::RunSeries series;
  series.mutable_series()->set_name("loss");
  series.mutable_series()->add_times_ms(5);
  EXPECT_EQ(to_json(series), R"({"run":0,"series":{"name":"loss","steps":[],"values":[],"times_ms":["5"]}})");
}

TEST(Json, EnumerationsAreTheirNamesTimesAreTextsAndMapsAreObjects) {
  v1::SweepSummary sweep;
  sweep.set_state(v1::SWEEP_STATE_ACTIVE);
  sweep.mutable_trials()->set_total(3);
  sweep.mutable_trials()->set_queued(3);
  sweep.mutable_created()->set_seconds(1'700'000'000);
  EXPECT_EQ(
      to_json(sweep),
      R"({"name":"","state":"SWEEP_STATE_ACTIVE","trials":{"total":3,"queued":3,"leased":0,)"
      R"("running":0,"completed":0,"failed":0,"cancelled":0,"held":0,"unfilled":0},)"
      R"("rows":0,"seeds":0,"seeds_min":0,"priority":0,"owner":"","weight":0,"preempts":false,"max_running":0,)"
      R"("breaker":false,"canary":false,"holds":[],"gpu_hours":0,"spent":"","revision":0,"tunes":"","tags":[],"pinned":false,"archived":false,)"
      R"("created":"2023-11-14T22:13:20Z"})");
  v1::PlanRow row;
  (*row.mutable_counts())["params.all"] = 5;
  EXPECT_EQ(to_json(row),
            R"({"id":"","label":"","set":{},"counts":{"params.all":5},"trials":0,"stored":0,"under_way":0,)"
            R"("config_hash":"","same_as":"","before_mend":0,"group":"","not_trained":"",)"
            R"("not_trained_why":"","sources":[],"memory_parts":{}})");
}

namespace pb = google::protobuf;
using Type = pb::FieldDescriptor::CppType;

/// The same by Protobuf itself.
std::string json_by_protobuf(const pb::Message& message, bool pretty) {
  pb::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = pretty;
  std::string text;
  EXPECT_TRUE(pb::util::MessageToJsonString(message, &text, options).ok());
  return text;
}

/// Fills messages with what their types can hold.
class Filler {
 public:
  explicit Filler(unsigned seed) : random_{seed} {}

  void fill(pb::Message& message) {
    if (message.GetDescriptor() == pb::Timestamp::descriptor()) {
      auto& time = dynamic_cast<pb::Timestamp&>(message);
      time.set_seconds(static_cast<std::int64_t>(random_() % 4'000'000'000));
      constexpr int kNanos[] = {0, 120'000'000, 1000, 7};
      time.set_nanos(kNanos[random_() % 4]);
      return;
    }
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const pb::FieldDescriptor& field = *message.GetDescriptor()->field(i);
      // an `optional` message Protobuf writes last; ours stays where it was before it was called so
      if (field.has_optional_keyword() && field.cpp_type() == Type::CPPTYPE_MESSAGE && !is_time(field))
        continue;
      // of a map one entry: Protobuf writes several in no order
      const std::size_t values = field.is_map() ? random_() % 2 : random_() % (field.is_repeated() ? 4 : 2);
      for (std::size_t value = 0; value < values; ++value) set(message, field);
    }
  }

 private:
  static bool is_time(const pb::FieldDescriptor& field) {
    return field.message_type() == pb::Timestamp::descriptor();
  }
  void set(pb::Message& message, const pb::FieldDescriptor& field) {
    const pb::Reflection& to = *message.GetReflection();
    const auto put = [&](auto only, auto more, auto value) {
      if (field.is_repeated())
        (to.*more)(&message, &field, value);
      else
        (to.*only)(&message, &field, value);
    };
    switch (field.cpp_type()) {
      case Type::CPPTYPE_INT32:
        return put(&pb::Reflection::SetInt32, &pb::Reflection::AddInt32,
                   static_cast<std::int32_t>(random_()));
      case Type::CPPTYPE_UINT32:
        return put(&pb::Reflection::SetUInt32, &pb::Reflection::AddUInt32,
                   static_cast<std::uint32_t>(random_()));
      case Type::CPPTYPE_INT64:
        return put(&pb::Reflection::SetInt64, &pb::Reflection::AddInt64,
                   static_cast<std::int64_t>(random_()));
      case Type::CPPTYPE_UINT64:
        return put(&pb::Reflection::SetUInt64, &pb::Reflection::AddUInt64, random_());
      case Type::CPPTYPE_DOUBLE:
        return put(&pb::Reflection::SetDouble, &pb::Reflection::AddDouble, real());
      case Type::CPPTYPE_FLOAT:
        return put(&pb::Reflection::SetFloat, &pb::Reflection::AddFloat, static_cast<float>(real()));
      case Type::CPPTYPE_BOOL:
        return put(&pb::Reflection::SetBool, &pb::Reflection::AddBool, random_() % 2 == 0);
      case Type::CPPTYPE_ENUM:
        return put(&pb::Reflection::SetEnumValue, &pb::Reflection::AddEnumValue,
                   static_cast<int>(random_() % 50));  // some have no name
      case Type::CPPTYPE_STRING:
        return put(&pb::Reflection::SetString, &pb::Reflection::AddString, text());
      case Type::CPPTYPE_MESSAGE:
        if (depth_ == kDeepest) return;  // some hold others of their own type
        ++depth_;
        fill(field.is_repeated() ? *to.AddMessage(&message, &field) : *to.MutableMessage(&message, &field));
        --depth_;
        return;
    }
  }
  double real() {
    // of 15 digits at most: of more, Protobuf writes 17 where fewer may do
    constexpr double kSome[] = {0, -0.0, 1, 0.1, 79.79, 1e21, 1e-7, 123456789};
    if (random_() % 2) return kSome[random_() % std::size(kSome)];
    return static_cast<double>(random_() % 1'000'000'000'000) / 1e4;
  }
  std::string text() {
    constexpr const char* kSome[] = {"", "val/top1", "79.79 ± 0.12", "a\n\"b\"\\", "<b>", "\u2028€–😀"};
    return kSome[random_() % std::size(kSome)];
  }

  static constexpr int kDeepest = 4;
  std::mt19937_64 random_;
  int depth_ = 0;
};

TEST(Json, IsTheTextThatProtobufWrites) {
  Filler filler{7};
  for (const auto* file : {v1::RunSummary::descriptor()->file(), v1::SweepSummary::descriptor()->file(),
                           v1::WorkerSummary::descriptor()->file()})
    for (int type = 0; type < file->message_type_count(); ++type)
      for (int i = 0; i < 20; ++i) {
        const auto* prototype =
            pb::MessageFactory::generated_factory()->GetPrototype(file->message_type(type));
        const std::unique_ptr<pb::Message> message{prototype->New()};
        filler.fill(*message);
        ASSERT_EQ(to_json(*message), json_by_protobuf(*message, false)) << message->GetTypeName();
        ASSERT_EQ(to_json(*message, true), json_by_protobuf(*message, true)) << message->GetTypeName();
      }
}

TEST(Json, ANumberHasAsFewDigitsAsGiveItBack) {
  const auto text_of = [](double value) {
    pb::DoubleValue message;
    message.set_value(value);
    const std::string text = to_json(message);
    EXPECT_TRUE(text.starts_with("{\"value\":") && text.ends_with("}")) << text;
    return text.substr(9, text.size() - 10);
  };
  EXPECT_EQ(text_of(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(text_of(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(text_of(5e-324), "5e-324");
  EXPECT_EQ(text_of(std::nan("")), "\"NaN\"");
  std::mt19937_64 random{5};
  for (int i = 0; i < 10'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const std::string text = text_of(value);
    EXPECT_EQ(nlohmann::json::parse(text).get<double>(), value) << text;
    EXPECT_LE(text.size(), std::string_view{"-2.2250738585072014e-308"}.size()) << text;
  }
}

/// Sets every message that the contract says is always there, and gives enumerations a value that has a name.
void complete(pb::Message& message) {
  if (message.GetDescriptor() == pb::Timestamp::descriptor()) return;
  const pb::Reflection& to = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const pb::FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const int values = field.is_repeated() ? to.FieldSize(message, &field) : 1;
    if (field.cpp_type() == Type::CPPTYPE_ENUM) {
      const int first = field.enum_type()->value(0)->number();
      for (int value = 0; field.is_repeated() && value < values; ++value)
        to.SetRepeatedEnumValue(&message, &field, value, first);
      if (!field.is_repeated() && (!field.has_presence() || to.HasField(message, &field)))
        to.SetEnumValue(&message, &field, first);
    }
    if (field.cpp_type() != Type::CPPTYPE_MESSAGE) continue;
    for (int value = 0; field.is_repeated() && value < values; ++value)
      complete(*to.MutableRepeatedMessage(&message, &field, value));
    if (!field.is_repeated() && (to.HasField(message, &field) || !field.containing_oneof()))
      complete(*to.MutableMessage(&message, &field));
  }
}

/// Why a value is not as a schema says, or nothing: as much of JSON Schema as json_schemas uses, but that an
/// object has no key which is not named.
std::string objection(const nlohmann::json& value, const nlohmann::ordered_json& schema,
                      const nlohmann::ordered_json& all) {
  const auto refuse = [&](const std::string& why) { return value.dump().substr(0, 200) + ": " + why; };
  if (schema.contains("$ref")) {
    const auto name = schema.at("$ref").get<std::string>();
    return objection(value, all.at(name.substr(name.rfind('/') + 1)), all);
  }
  if (schema.contains("anyOf")) {
    for (const auto& each : schema.at("anyOf"))
      if (objection(value, each, all).empty()) return "";
    return refuse("none of anyOf");
  }
  const auto type = schema.at("type").get<std::string>();
  const bool is = type == "object"    ? value.is_object()
                  : type == "array"   ? value.is_array()
                  : type == "string"  ? value.is_string()
                  : type == "boolean" ? value.is_boolean()
                  : type == "integer" ? value.is_number_integer()
                                      : type == "number" && value.is_number();
  if (!is) return refuse("not of type " + type);
  if (type == "integer" && (value < schema.at("minimum") || value > schema.at("maximum")))
    return refuse("out of bounds");
  const auto holds = [](const nlohmann::ordered_json& list, const std::string& text) {
    return std::find(list.begin(), list.end(), text) != list.end();
  };
  if (schema.contains("enum") && !holds(schema.at("enum"), value.get<std::string>()))
    return refuse("none of enum");
  if (schema.contains("pattern") &&
      !std::regex_match(value.get<std::string>(), std::regex{schema.at("pattern").get<std::string>()}))
    return refuse("not of the pattern");
  if (type == "array")
    for (const auto& each : value)
      if (auto why = objection(each, schema.at("items"), all); !why.empty()) return why;
  if (type != "object") return "";
  const bool is_map = schema.contains("additionalProperties");
  for (const auto& [key, each] : value.items()) {
    if (!is_map && !schema.at("properties").contains(key)) return refuse("unknown key " + key);
    const auto& of_key = is_map ? schema.at("additionalProperties") : schema.at("properties").at(key);
    if (auto why = objection(each, of_key, all); !why.empty()) return key + ": " + why;
  }
  if (schema.contains("required"))
    for (const auto& key : schema.at("required"))
      if (!value.contains(key.get<std::string>())) return refuse("no key " + key.get<std::string>());
  return "";
}

TEST(Json, IsAsItsSchemaSays) {
  Filler filler{11};
  for (const auto* file : {v1::RunSummary::descriptor()->file(), v1::SweepSummary::descriptor()->file(),
                           v1::Table::descriptor()->file(), v1::CompareResponse::descriptor()->file(),
                           v1::WorkerSummary::descriptor()->file()})
    for (int type = 0; type < file->message_type_count(); ++type) {
      const pb::Descriptor* const descriptor = file->message_type(type);
      const auto schemas = json_schemas({&descriptor, 1});
      for (int i = 0; i < 20; ++i) {
        const std::unique_ptr<pb::Message> message{
            pb::MessageFactory::generated_factory()->GetPrototype(descriptor)->New()};
        if (i > 0) filler.fill(*message);
        complete(*message);
        ASSERT_EQ(
            objection(nlohmann::json::parse(to_json(*message)), schemas.at(descriptor->name()), schemas), "")
            << descriptor->full_name();
      }
    }
}

TEST(Json, ASchemaSaysWhatTheContractSays) {
  const pb::Descriptor* const table = v1::Table::descriptor();
  const auto schemas = json_schemas({&table, 1});
  EXPECT_EQ(schemas.at("Table").at("description"),
            "The unit of work: rows by columns, each cell a mean over the seeds that are there.");
  EXPECT_EQ(schemas.at("Column").at("properties").at("kind").at("$ref"), "#/components/schemas/ColumnKind");
  const auto required = schemas.at("Cell").at("required").get<std::vector<std::string>>();
  EXPECT_THAT(required, testing::Not(testing::Contains("mean"))) << "it is optional";
  EXPECT_THAT(required, testing::Contains("n"));
  EXPECT_FALSE(schemas.contains("SweepDetail")) << "no table has one";
}

/// In UTF-8.
std::string text_of(char32_t code) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  const auto more = [&](int shift) { return byte(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), more(0)};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), more(6), more(0)};
  return {byte(0xF0 | code >> 18), more(12), more(6), more(0)};
}

TEST(Json, EscapesTheCharactersThatProtobufEscapes) {
  v1::Cell cell;
  for (char32_t code = 0; code <= 0x10FFFF; ++code)
    if (code < 0xD800 || code > 0xDFFF) *cell.mutable_text() += text_of(code);
  EXPECT_TRUE(to_json(cell) == json_by_protobuf(cell, false));
}

TEST(Json, AByteThatIsNoPartOfUtf8IsReplacedAndSwallowsNothing) {
  v1::Cell cell;
  const auto text_after = [&](const std::string& text) {
    cell.set_text(text);
    return nlohmann::json::parse(to_json(cell)).at("text").get<std::string>();
  };
  EXPECT_EQ(text_after("a\xC3\"b"), "a\uFFFD\"b");
  EXPECT_EQ(text_after("\xE2\x82\\"), "\uFFFD\uFFFD\\");
  EXPECT_EQ(text_after("€\xF0\x9F\x98"), "€\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(text_after("\x80\xC0\xAF<\xFF"), "\uFFFD\uFFFD\uFFFD<\uFFFD");
}

TEST(Json, MapsAreInTheOrderOfTheirKeys) {
  v1::PlanRow row;
  for (const char* key : {"b", "a", "c"}) (*row.mutable_set())[key] = "1";
  EXPECT_THAT(to_json(row), testing::HasSubstr(R"("set":{"a":"1","b":"1","c":"1"})"));
}

TEST(Json, IsWrittenInSmallPiecesHoweverLongItIs) {
  v1::Table table;
  for (int i = 0; i < 20'000; ++i) {
    auto& row = *table.add_rows();
    row.set_id("row");
    for (int cell = 0; cell < 3; ++cell) row.add_cells()->set_text("79.79 ± 0.12");
  }
  std::size_t largest = 0;
  std::string whole;
  write_json(table, false, [&](std::string_view piece) {
    largest = std::max(largest, piece.size());
    whole += piece;
  });
  EXPECT_GT(whole.size(), std::size_t{5} << 20);
  EXPECT_LT(largest, std::size_t{65} << 10);
  EXPECT_EQ(whole, to_json(table));
}

/// What from_json says of a text that it refuses.
template <class Message>
std::string refusal(const std::string& text) {
  Message message;
  try {
    from_json(text, message);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "nothing";
}

TEST(JsonReader, ReadsWhatAClientWrites) {
  v1::ExtendSweepRequest request;
  from_json(R"({"file":{"path":"a.yaml","text":"ablate: 1\n\u00e9"},"dry_run":true,"by":null,)"
            R"("budget":{"max_gpu_hours":2.5,"until":"2023-11-14T22:13:20Z"}})",
            request);
  EXPECT_EQ(request.file().path(), "a.yaml");
  EXPECT_EQ(request.file().text(), "ablate: 1\né");
  EXPECT_TRUE(request.dry_run());
  EXPECT_EQ(request.budget().max_gpu_hours(), 2.5);
  EXPECT_EQ(request.budget().until().seconds(), 1'700'000'000);
  EXPECT_FALSE(request.has_provenance());
  v1::RetrySweepRequest retry;
  from_json(R"({"seed":"-9007199254740993","rerun":["a","b"]})", retry);
  EXPECT_EQ(retry.seed(), -9007199254740993);
  EXPECT_EQ(retry.rerun_size(), 2);
  v1::RetrySweepRequest number;
  from_json(R"({"seed":7})", number);
  EXPECT_EQ(number.seed(), 7);
}

TEST(JsonReader, ReadsBackWhatIsWritten) {
  for (int i = 0; i < 100; ++i) {
    v1::ExtendSweepRequest request;
    request.mutable_file()->set_text("a\n\"b\"\\ \u2028€–😀");
    request.mutable_budget()->set_max_gpu_hours(1.0 / (i + 1));
    request.mutable_budget()->mutable_until()->set_seconds(i);
    v1::ExtendSweepRequest read;
    from_json(to_json(request), read);
    EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());
  }
}

TEST(JsonReader, SaysInOneLineWhatIsWrong) {
  using Pause = v1::PauseSweepRequest;
  EXPECT_EQ(refusal<Pause>(R"({"sweep":"a","stop_runing":true})"),
            "unknown field 'stop_runing' of PauseSweepRequest; did you mean 'stop_running'?");
  EXPECT_EQ(refusal<Pause>(R"({"sweep":7})"), "sweep: expected a string, not 7");
  EXPECT_EQ(refusal<Pause>(R"({"stop_running":"yes"})"), "stop_running: expected true or false, not \"yes\"");
  EXPECT_EQ(refusal<Pause>(R"({"sweep":"a","sweep":"b"})"), "field 'sweep' is given twice");
  EXPECT_EQ(refusal<Pause>(R"([])"), "expected an object, not a list");
  EXPECT_EQ(refusal<Pause>(R"({"sweep":)"), "invalid JSON at byte 10");
  EXPECT_EQ(refusal<Pause>(""), "invalid JSON at byte 1");
  EXPECT_EQ(refusal<Pause>("{\"sweep\":\"\xff\"}"), "invalid JSON at byte 11");
  EXPECT_EQ(refusal<Pause>(R"({"sweep":)" + std::string(200, '[') + std::string(200, ']') + "}"),
            "the JSON is nested more than 100 levels deep");
  EXPECT_EQ(refusal<v1::SubmitRequest>(R"({"file":{"texte":""}})"),
            "file: unknown field 'texte' of SweepFile; did you mean 'text'?");
  EXPECT_EQ(refusal<v1::SubmitRequest>(R"({"budget":{"until":"tomorrow"}})"),
            "budget.until: expected a time such as 2026-01-31T12:00:00Z, not \"tomorrow\"");
  EXPECT_EQ(refusal<v1::SubmitRequest>(R"({"priority":3000000000})"),
            "priority: expected a whole number from -2147483648 to 2147483647, not 3000000000");
  EXPECT_EQ(refusal<v1::SubmitRequest>(R"({"weight":1e400})"), "the JSON has a number that is out of range");
  EXPECT_EQ(refusal<Pause>("{\"\\u001b[31msweep\\n\":1}"), "unknown field 'sweep ' of PauseSweepRequest");
  EXPECT_EQ(refusal<v1::SubmitRequest>(R"({"priority":1.5})"),
            "priority: expected a whole number from -2147483648 to 2147483647, not 1.5");
  EXPECT_EQ(refusal<v1::RetrySweepRequest>(R"({"rerun":"a"})"), "rerun: expected a list, not \"a\"");
  EXPECT_EQ(refusal<v1::RetrySweepRequest>(R"({"rerun":["a",1]})"), "rerun.1: expected a string, not 1");
  EXPECT_LT(refusal<Pause>("{\"" + std::string(100'000, 'x') + "\":1}").size(), 200u);
}

}  // namespace
}  // namespace abl::views
