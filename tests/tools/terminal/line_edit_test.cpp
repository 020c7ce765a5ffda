#include "tools/terminal/line_edit.h"

#include <gtest/gtest.h>

#include "tools/terminal/line_text.h"

namespace minimind {
namespace {

std::string typed(const std::string& bytes) {
  LineEdit edit({"/reset", "/regenerate", "/undo"});
  edit.begin("> ", false);
  LineKeys keys;
  keys.push(bytes);
  while (const auto key = keys.next()) edit.press(*key);
  return edit.text();
}

TEST(LineEdit, APasteThatIsTooLongIsNotInsertedAndIsToldOfOnce) {
  LineEdit edit({});
  edit.begin("> ", false);
  EXPECT_EQ(edit.press({LineKey::text, std::u32string(LineEdit::longest_text, U'a')}), LineAction::edit);
  EXPECT_EQ(edit.press({LineKey::newline, {}}), LineAction::list_words);
  EXPECT_EQ(edit.words_to_list().size(), 1u);
  EXPECT_EQ(edit.press({LineKey::text, U"b"}), LineAction::reject);
  EXPECT_EQ(edit.text(), std::string(LineEdit::longest_text, 'a'));
}

TEST(LineText, CharactersAreGraphemeClusters) {
  const std::u32string text = U"e\u0301👩‍👩‍👧🇨🇳中";
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size();) ends.push_back(at = character_end(text, at));
  EXPECT_EQ(ends, (std::vector<std::size_t>{2, 7, 9, 10}));
  EXPECT_EQ(character_begin(text, text.size()), 9u);
  EXPECT_EQ(character_begin(text, 9), 7u);
  EXPECT_EQ(character_begin(text, 7), 2u);
}

TEST(LineText, WordsEndAtPunctuationAndWhereWideMeetsNarrow) {
  const std::u32string text = U"你好，世界 model推理v2!";
  EXPECT_EQ(word_end(text, 0), 2u);
  EXPECT_EQ(word_end(text, 2), 5u);
  EXPECT_EQ(word_end(text, 5), 11u);
  EXPECT_EQ(word_end(text, 11), 13u);
  EXPECT_EQ(word_end(text, 15), 16u);
  EXPECT_EQ(word_begin(text, 16), 13u);
  EXPECT_EQ(word_begin(text, 13), 11u);
  EXPECT_EQ(word_begin(text, 6), 3u);
  EXPECT_EQ(word_begin(text, 0), 0u);
}

TEST(LineText, InvisibleCharactersAreEscaped) {
  EXPECT_EQ(show_character(U"\x03").bytes, "^C");
  EXPECT_EQ(show_character(U"\u200b").bytes, "<U+200B>");
  EXPECT_EQ(show_character(U"\u0301").columns, 8u);
  EXPECT_EQ(show_character(U"中").columns, 2u);
  EXPECT_EQ(show_character(U"e\u0301").columns, 1u);
  EXPECT_TRUE(show_character(U"中").certain);
  EXPECT_FALSE(show_character(U"👩‍👧").certain);
  EXPECT_TRUE(show_character(U"あ").certain);
  EXPECT_FALSE(show_character(U"\u303f").certain) << "narrow, among wide ones";
}

TEST(LineLayout, AWideCharacterIsNotSplitAtTheEdge) {
  const LineLayout layout = lay_out({U"> ", false, U"a中中", 3}, 5);
  ASSERT_EQ(layout.rows.size(), 2u);
  EXPECT_EQ(layout.rows[0].bytes, "> a中");
  EXPECT_EQ(layout.rows[1].bytes, "中");
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 2u);
}

TEST(LineLayout, TheCursorAfterAFullRowStartsTheNext) {
  const LineLayout layout = lay_out({U"> ", false, U"abc", 3}, 5);
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 0u);
}

TEST(LineLayout, OneRowShowsTheTextAroundTheCursor) {
  const LineInOneRow row = lay_out_in_one_row({U"> ", false, U"abcdefghij", 8}, 7);
  EXPECT_EQ(row.before, "cdefgh");
  EXPECT_EQ(row.after, "");
  EXPECT_EQ(lay_out_in_one_row({U"> ", false, U"a\tb\nc", 0}, 40).after, "a^Ib^Jc");
  EXPECT_EQ(lay_out_in_one_row({U"> ", false, U"一\n二", 1}, 20).after, "^J二");
}

TEST(LineEdit, KeysMoveAndDeleteByCharactersAndWords) {
  EXPECT_EQ(typed("山👩‍👩‍👧\x7f水"), "山水");
  EXPECT_EQ(typed("e\u0301x\x02\x02!"), "!e\u0301x");
  EXPECT_EQ(typed("你好，世界\x17"), "你好，");
  EXPECT_EQ(typed("一二三\x01\x06\x0b"), "一");
  EXPECT_EQ(typed("一二三\x02\x15"), "三");
  EXPECT_EQ(typed("一二\x14"), "二一");
  EXPECT_EQ(typed("one 二三\x17\x17\x19\x19"), "one 二三one 二三");
  EXPECT_EQ(typed("ab\x01\x04"), "b");
}

TEST(LineHistory, KeepsTheLastEntries) {
  LineHistory history;
  for (std::size_t i = 0; i < LineHistory::most_entries + 5; ++i) history.add({static_cast<char32_t>(U'一' + i)});
  EXPECT_EQ(history.size(), LineHistory::most_entries);
  std::optional<std::u32string> oldest;
  while (const auto older = history.older(U"")) oldest = older;
  EXPECT_EQ(oldest, std::u32string(1, U'一' + 5));
}

TEST(LineEdit, PastedNewlinesAreNotEnter) {
  EXPECT_EQ(typed("\x1b[200~a\r\nb\rc\n\x1b[201~d"), "a\nb\ncd");
  EXPECT_EQ(typed("a\x1b\rb"), "a\nb");
  EXPECT_EQ(typed(std::string("\x1b[200~a\0b\x1b[201~", 15)), "ab");
}

TEST(LineEdit, UnknownSequencesAreNotTyped) {
  EXPECT_EQ(typed("a\x1b[15~b\x1b[<0;1;1Mc\x1b[[Ad\x1bOPe\x1b[201~f"), "abcdef");
}

TEST(LineKeys, WhatNeverEndsIsNotCollected) {
  LineKeys keys;
  keys.push("\x1b[200~");
  for (int i = 0; i < 3000; ++i) {
    keys.push(std::string(1000, 'a'));
    ASSERT_FALSE(keys.next());
  }
  keys.push("b\x1b[20");
  EXPECT_FALSE(keys.next());
  keys.push("1~c");
  const auto paste = keys.next();
  ASSERT_TRUE(paste);
  EXPECT_GT(paste->text.size(), LineEdit::longest_text) << "which is then told of";
  EXPECT_LT(paste->text.size(), 3'000'000u);
  EXPECT_EQ(keys.next()->text, U"c");
  keys.push("\x1b[" + std::string(1000, '1'));
  EXPECT_EQ(keys.next()->key, LineKey::unknown);
  EXPECT_FALSE(keys.next());
}

TEST(LineEdit, ASearchFindsEarlierEntries) {
  LineEdit edit({});
  for (const char* const entry : {"北京一", "上海", "北京二"}) edit.remember(entry);
  LineKeys keys;
  const auto press = [&](const std::string& bytes) {
    keys.push(bytes);
    while (const auto key = keys.next()) edit.press(*key);
    return edit.text();
  };
  edit.begin("> ", false);
  EXPECT_EQ(press("draft"), "draft");
  EXPECT_EQ(press("\x12北京"), "北京二");
  EXPECT_EQ(to_utf8(edit.view().prompt), "(search: 北京) ");
  EXPECT_EQ(press("\x12"), "北京一");
  EXPECT_EQ(press("\x12"), "北京一");
  EXPECT_EQ(to_utf8(edit.view().prompt), "(not found: 北京) ");
  EXPECT_EQ(press("\x7f\x7f上"), "上海");
  EXPECT_EQ(press("\x07"), "draft");
  EXPECT_EQ(press("\x12京一\x05!"), "北京一!");
  EXPECT_EQ(press("\x0e"), "上海");
  EXPECT_EQ(press("\x0e\x0e"), "draft");
}

}  // namespace
}  // namespace minimind
