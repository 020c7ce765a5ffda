#include "weights/torch/pickle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>

#include "tests/support/pickle_writer.h"
#include "tests/support/temporary_file.h"

namespace minimind {
namespace {

using namespace std::string_literals;
using pickle::Document;
using pickle_writer::document;
using pickle_writer::global;
using pickle_writer::integer;
using pickle_writer::text;

Document load(const std::string& bytes) {
  ByteReader reader(as_bytes(bytes), "x.pth");
  return pickle::unpickle(reader);
}

std::string error_for(const std::string& bytes) {
  return error_of([&] { load(bytes); });
}

template <typename T>
T top(const std::string& bytes) {
  const Document loaded = load(bytes);
  return std::get<T>(loaded.at(loaded.top));
}

std::string top_text(const std::string& bytes) {
  const Document loaded = load(bytes);
  return std::string(std::get<pickle::Text>(loaded.at(loaded.top)).text);
}

TEST(Pickle, ReadsEveryFormOfInteger) {
  EXPECT_EQ(top<std::int64_t>("K\xff."), 255);
  EXPECT_EQ(top<std::int64_t>("M\x01\x02."), 0x0201);
  EXPECT_EQ(top<std::int64_t>("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(top<std::int64_t>("I-17\n."), -17);
  EXPECT_EQ(top<std::int64_t>("L9223372036854775807L\n."), INT64_MAX);
  EXPECT_EQ(top<std::int64_t>("\x8a\x00."s), 0);
  EXPECT_EQ(top<std::int64_t>("\x8a\x01\x80."), -128);
  EXPECT_EQ(top<std::int64_t>("\x8b\x02\x00\x00\x00\x00\x80."s), -32768);
}

TEST(Pickle, PassesOverIntegersOfMoreThan64Bits) {
  EXPECT_NO_THROW(top<pickle::BigInteger>("\x8a\x09" + std::string(9, '\x11') + "."));
}

TEST(Pickle, ReadsEveryFormOfTheOtherScalars) {
  EXPECT_TRUE(std::holds_alternative<pickle::None>(load("N.").values.front()));
  EXPECT_TRUE(top<bool>("\x88."));
  EXPECT_TRUE(top<bool>("I01\n."));
  EXPECT_FALSE(top<bool>("\x89."));
  EXPECT_FALSE(top<bool>("I00\n."));
  EXPECT_EQ(top<double>("G\x3f\xf8\0\0\0\0\0\0."s), 1.5);
  EXPECT_EQ(top_text("U\x01x."), "x");
  EXPECT_EQ(top_text("\x8c\x01x."), "x");
  EXPECT_EQ(top_text("T\x01\0\0\0x."s), "x");
  EXPECT_EQ(top_text("X\x01\0\0\0x."s), "x");
  EXPECT_EQ(top_text("\x8d\x01\0\0\0\0\0\0\0x."s), "x");
  EXPECT_NO_THROW(top<pickle::Bytes>("C\x01x."));
  EXPECT_NO_THROW(top<pickle::Bytes>("B\x01\0\0\0x."s));
  EXPECT_NO_THROW(top<pickle::Bytes>("\x8e\x01\0\0\0\0\0\0\0x."s));
  EXPECT_NO_THROW(top<pickle::Bytes>("\x96\x01\0\0\0\0\0\0\0x."s));
}

TEST(Pickle, BuildsEveryContainer) {
  EXPECT_EQ(top<pickle::List>("](K\x01K\x02"
                              "eK\x03"
                              "a.")
                .items.size(),
            3u);
  EXPECT_EQ(top<pickle::List>("(K\x01K\x02l.").items.size(), 2u);
  EXPECT_EQ(top<pickle::Tuple>("(K\x01K\x02K\x03K\x04t.").items.size(), 4u);
  EXPECT_EQ(top<pickle::Tuple>(").").items.size(), 0u);
  EXPECT_EQ(top<pickle::Tuple>("K\x01\x85.").items.size(), 1u);
  EXPECT_EQ(top<pickle::Tuple>("K\x01K\x02\x86.").items.size(), 2u);
  EXPECT_EQ(top<pickle::Tuple>("K\x01K\x02K\x03\x87.").items.size(), 3u);
  EXPECT_EQ(top<pickle::Set>("\x8f(K\x01K\x02\x90.").items.size(), 2u);
  EXPECT_EQ(top<pickle::Set>("(K\x01\x91.").items.size(), 1u);
  EXPECT_EQ(top<pickle::Dict>("}(K\x01NK\x02NuK\x03Ns.").entries.size(), 3u);
  EXPECT_EQ(top<pickle::Dict>("(K\x01Nd.").entries.size(), 1u);
}

TEST(Pickle, KeepsTheOrderOfTupleItems) {
  const std::string bytes = "K\x07K\x08\x86.";
  const Document loaded = load(bytes);
  const auto& items = std::get<pickle::Tuple>(loaded.at(loaded.top)).items;
  EXPECT_EQ(std::get<std::int64_t>(loaded.at(items[0])), 7);
  EXPECT_EQ(std::get<std::int64_t>(loaded.at(items[1])), 8);
}

TEST(Pickle, TheMemoSharesValuesInEveryForm) {
  for (const std::string& bytes : {"]q\x05h\x05\x86."s, "]r\x05\0\0\0j\x05\0\0\0\x86."s, "]\x94h\0\x86."s}) {
    const Document loaded = load(bytes);
    const auto& items = std::get<pickle::Tuple>(loaded.at(loaded.top)).items;
    EXPECT_EQ(items.at(0), items.at(1));
  }
}

TEST(Pickle, PopAndDupTouchTheStackAlone) {
  EXPECT_EQ(top<std::int64_t>("K\x01K\x02"
                              "0."),
            1);
  EXPECT_EQ(top<std::int64_t>("K\x01(K\x02K\x03"
                              "1."),
            1);
  EXPECT_EQ(top<pickle::Tuple>("K\x01"
                               "2\x86.")
                .items.size(),
            2u);
}

TEST(Pickle, AcceptsTheFramesOfProtocol4) {
  EXPECT_EQ(top<std::int64_t>("\x80\x04\x95\x03\0\0\0\0\0\0\0K\x2a."s), 42);
}

TEST(Pickle, LeavesTheReaderAfterStop) {
  const std::string bytes = "K\x01.and more";
  ByteReader reader(as_bytes(bytes), "x.pth");
  pickle::unpickle(reader);
  EXPECT_EQ(reader.position(), 3u);
}

TEST(Pickle, BuildsAnOrderedDictInBothWritings) {
  const std::string ordered = global("collections", "OrderedDict");
  EXPECT_EQ(top<pickle::Dict>(document(ordered + ")R(K\x01NK\x02Nu")).entries.size(), 2u);
  EXPECT_EQ(top<pickle::Dict>(document(ordered + "](](K\x01Ne](K\x02Nee\x85R")).entries.size(), 2u);
}

TEST(Pickle, IgnoresTheVersionRecordThatIsSetOnAStateDict) {
  EXPECT_EQ(top<pickle::Dict>(document(global("collections", "OrderedDict") + ")R}" + text("_metadata") + "Nsb"))
                .entries.size(),
            0u);
}

TEST(Pickle, ReplacesTorchSizeByItsTuple) {
  EXPECT_EQ(top<pickle::Tuple>(document(global("torch", "Size") + "K\x02K\x03\x86\x85R")).items.size(), 2u);
}

TEST(Pickle, RecordsACallOfAnAllowListedNameAndDoesNotInterpretIt) {
  const auto call = top<pickle::Call>(document(global("argparse", "Namespace") + ")\x81}" + text("lr") + "K\x01sb"));
  EXPECT_EQ(call.callable, "argparse.Namespace");
  EXPECT_EQ(top<pickle::Call>(document("(" + global("__builtin__", "set") + "]o")).callable, "builtins.set");
  EXPECT_EQ(top<pickle::Call>(document("(icollections\nCounter\n")).callable, "collections.Counter");
}

// Every way a pickle can name a function or class.
TEST(Pickle, RejectsUnlistedNamesWithoutExecutingThem) {
  const std::string attacks[] = {
      document(global("posix", "system") + text("touch x") + "\x85R"),
      document(text("posix") + text("system") + "\x93" + text("touch x") + "\x85R"),
      document("(" + text("touch x") + "iposix\nsystem\n"),
      document("(" + global("posix", "system") + text("touch x") + "o"),
      document(global("posix", "system") + ")\x81"),
      document(global("posix", "system")),
  };
  for (const std::string& attack : attacks) {
    EXPECT_NE(error_for(attack).find("x.pth: the pickle refers to 'posix.system'"), std::string::npos);
    EXPECT_NE(error_for(attack).find("nothing was executed"), std::string::npos);
  }
}

TEST(Pickle, RejectsNamesThatOnlyResembleAllowListedOnes) {
  for (const std::string& name : {"OrderedDict.__init__"s, "OrderedDict\0"s, "orderedDict"s, ""s}) {
    EXPECT_NE(error_for(document(global("collections", name))).find("refers to"), std::string::npos) << name;
  }
  EXPECT_NE(error_for(document(global("builtins", "eval"))).find("'builtins.eval'"), std::string::npos);
  EXPECT_NE(error_for(document(global("__builtin__", "getattr"))).find("'builtins.getattr'"), std::string::npos);
  EXPECT_NE(error_for(document(global("torch", "load"))).find("'torch.load'"), std::string::npos);
}

TEST(Pickle, RejectsCallsOfDataAndMentionedNames) {
  for (const std::string& callable : {"K\x01"s, "]"s, text("print"), global("torch", "FloatStorage")}) {
    EXPECT_NE(error_for(document(callable + ")R")).find("nothing was executed"), std::string::npos);
  }
  EXPECT_NE(error_for(document(global("argparse", "Namespace") + "]R")).find("nothing was executed"),
            std::string::npos);
}

TEST(Pickle, RejectsCallsWithWhatTheNameDoesNotTake) {
  const std::string size = global("torch", "Size"), ordered = global("collections", "OrderedDict");
  for (const std::string& attack : {size + ")R", size + "K\x01\x85R", size + ")N\x86R"}) {
    EXPECT_NE(error_for(document(attack)).find("torch.Size is called with something other than a tuple"),
              std::string::npos);
  }
  for (const std::string& attack : {ordered + "N\x85R", ordered + "]N\x86R"}) {
    EXPECT_NE(error_for(document(attack)).find("made of something other than a list"), std::string::npos);
  }
  for (const std::string& attack : {ordered + "]Na\x85R", ordered + "]](NNNea\x85R"}) {
    EXPECT_NE(error_for(document(attack)).find("an entry of an OrderedDict is not a pair"), std::string::npos);
  }
  for (const std::string& names : {"N" + text("system"), text("posix") + "N"}) {
    EXPECT_NE(error_for(document(names + "\x93")).find("a name is not a string"), std::string::npos);
  }
}

TEST(Pickle, RejectsStateOnTensorsAndPlainValues) {
  const std::string tensor = pickle_writer::tensor({.storage_elements = 1, .shape = {1}, .strides = {1}});
  EXPECT_NE(error_for(document(tensor + "}b")).find("state is set on"), std::string::npos);
  EXPECT_NE(error_for(document("K\x01}b")).find("state is set on"), std::string::npos);
}

TEST(Pickle, RejectsOpcodesThatReachOutsideTheFile) {
  for (const std::string& opcode : {"\x82\x01"s, "\x83\x01\x01"s, "\x97"s, "]\x98"s}) {
    EXPECT_NE(error_for(document(opcode)).find("is not an opcode of plain data"), std::string::npos);
  }
}

TEST(Pickle, RejectsUnknownProtocolsAndOpcodes) {
  EXPECT_NE(error_for("\x80\x06N.").find("the protocol is 6, expected 0 to 5"), std::string::npos);
  EXPECT_NE(error_for("\xff").find("0xff"), std::string::npos);
}

TEST(Pickle, RejectsEveryTruncation) {
  const std::string whole = document(pickle_writer::dict(
      {text("a"), pickle_writer::tensor({.storage_elements = 4, .shape = {2, 2}, .strides = {2, 1}}), text("b"),
       "G12345678"}));
  EXPECT_EQ(error_for(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(error_for(whole.substr(0, size)), "") << size;
  }
}

TEST(Pickle, RejectsLengthsThatPassTheEndOrAreNegative) {
  for (const std::string& bytes :
       {"X\xff\xff\xff\xffx."s, "T\xff\xff\xff\xffx."s, "\x8b\xff\xff\xff\x7fx."s, "U\xffx."s, "B\xff\xff\xff\xffx."s,
        "\x8d\xff\xff\xff\xff\xff\xff\xff\xffx."s, "\x8e\xff\xff\xff\xff\xff\xff\xff\xffx."s,
        "\x95\xff\xff\xff\xff\xff\xff\xff\xff."s, "Vno end"s}) {
    EXPECT_NE(error_for(bytes), "");
  }
}

TEST(Pickle, RejectsTakingFromAnEmptyStackOrAcrossAMark) {
  for (const std::string& bytes : {"."s,
                                   "0."s,
                                   "2."s,
                                   "a."s,
                                   "]a."s,
                                   "]e."s,
                                   "K\x01(000."s,
                                   "K\x01(\x85."s,
                                   "t."s,
                                   "u."s,
                                   "}K\x01s."s,
                                   "R."s,
                                   ")R."s,
                                   "Q."s,
                                   "q\x01."s,
                                   "b."s,
                                   "\x93."s,
                                   "(o."s,
                                   "\x87."s,
                                   "(K\x01"
                                   "b."s,
                                   "}(K\x01u."s,
                                   "(K\x01"
                                   "d."s}) {
    EXPECT_NE(error_for(bytes), "") << testing::PrintToString(bytes);
  }
}

TEST(Pickle, RejectsItemsForTheWrongKindOfValue) {
  EXPECT_NE(error_for(")(K\x01"
                      "e.")
                .find("added to a tuple, not to a list"),
            std::string::npos);
  EXPECT_NE(error_for("](K\x01Nu.").find("added to a list, not to a dict"), std::string::npos);
  EXPECT_NE(error_for("](K\x01\x90.").find("added to a list, not to a set"), std::string::npos);
}

TEST(Pickle, RejectsMemoEntriesThatWereNeverSetOrAreOutOfRange) {
  EXPECT_NE(error_for("h\x05.").find("memo entry 5"), std::string::npos);
  EXPECT_NE(error_for("]q\x07h\x05.").find("memo entry 5"), std::string::npos);
  EXPECT_NE(error_for("]r\xff\xff\xff\xff.").find("memo index"), std::string::npos);
}

TEST(Pickle, RejectsInvalidTextNumbers) {
  for (const std::string& bytes : {"I\n."s, "I12x\n."s, "L99999999999999999999L\n."s}) {
    EXPECT_NE(error_for(bytes).find("is not a 64-bit number"), std::string::npos);
  }
}

TEST(Pickle, RejectsWhatOnlyProtocol0Has) {
  for (const std::string& bytes : {"F-2.5\n."s, "S'a'\n."s, "Va\n."s, "]p5\n."s, "]g5\n."s, "P0\n."s}) {
    EXPECT_NE(error_for(bytes).find("is not an opcode of plain data"), std::string::npos) << bytes;
  }
}

TEST(Pickle, MillionsOfNestedListsAreBuiltAndFreedWithoutRecursion) {
  const std::size_t depth = 2'000'000;
  const std::string bytes = std::string(depth, ']') + std::string(depth - 1, 'a') + ".";
  EXPECT_EQ(load(bytes).values.size(), depth);
}

TEST(Pickle, MillionsOfMarksAreAnErrorNotACrash) {
  EXPECT_NE(error_for(std::string(pickle::most_values + 1, '(') + ".").find("2097152 marks"), std::string::npos);
}

TEST(Pickle, ValuesThatContainThemselvesAreStoredOnce) {
  EXPECT_EQ(load("]q\x01h\x01"
                 "a.")
                .values.size(),
            1u);
  EXPECT_EQ(load("}q\x01K\x01h\x01s.").values.size(), 2u);
}

TEST(Pickle, SharedValuesAreNotMultiplied) {
  // 60 lists, each twice the previous one: 2^60 items if they were copied.
  std::string bytes = "]q\0"s;
  for (char i = 1; i < 60; ++i) bytes += "](h"s + static_cast<char>(i - 1) + "h" + static_cast<char>(i - 1) + "eq" + i;
  EXPECT_EQ(load(bytes + ".").values.size(), 60u);
}

TEST(Pickle, RepeatedOrderedDictsOfOneListAreBounded) {
  std::string bytes = "]q\x01("s;
  for (int i = 0; i < 10'000; ++i) bytes += "](K\x01Ne";
  bytes += "e" + global("collections", "OrderedDict") + "q\x02";
  for (int i = 0; i < 10'000; ++i) bytes += "h\x02h\x01\x85R0";
  EXPECT_NE(error_for(bytes + ".").find("items in containers"), std::string::npos);
}

TEST(Pickle, LimitsTheStackValuesAndItems) {
  EXPECT_NE(error_for("N" + std::string(pickle::most_values, '2') + ".").find("on the stack"), std::string::npos);
  EXPECT_NE(error_for("(" + std::string(pickle::most_values, 'N') + "1N.").find("values"), std::string::npos);
  const std::string many_items = "(N" + std::string(pickle::most_values - 10, '2') + "e";
  EXPECT_EQ(error_for("]" + many_items + many_items + "."), "");
  EXPECT_NE(error_for("]" + many_items + many_items + many_items + ".").find("items"), std::string::npos);
  const std::string half = text(std::string(pickle::most_text / 2, 'a'));
  EXPECT_EQ(error_for(half + half + "."), "");
  EXPECT_NE(error_for(half + half + text("b") + ".").find("bytes of strings"), std::string::npos);
}

}  // namespace
}  // namespace minimind
