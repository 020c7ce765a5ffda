"""Tests the chat page in a browser against a server whose answers are known, some of them hostile."""

import importlib.util
import json
import pathlib
import tempfile
import time
import unittest
import xml.etree.ElementTree

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

import browsers
from fake_server import LONG, MARKDOWN, POEM, FakeServer, model

AXE = pathlib.Path(importlib.util.find_spec('axe_playwright_python').submodule_search_locations[0], 'axe.min.js')
POEM_QUESTION = '写一首七言绝句，题目：秋夜'


class PageTest(unittest.TestCase):
    language = 'en-US'

    @classmethod
    def setUpClass(cls):
        cls.downloads = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.browser = browsers.start_browser(cls.language, cls.downloads)
        cls.addClassCleanup(cls.browser.quit)

    # Each test has a server with its own port, which is an origin with empty storage.
    def start_server(self):
        server = FakeServer().start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def setUp(self):
        self.server = self.start_server()
        self.browser.take_requests()
        self.browser.take_errors()
        self.load()

    def tearDown(self):
        self.check_network()
        self.assertEqual([error for error in self.browser.take_errors() if not self.is_expected(error)], [])

    # Every request of the browser, also those that the policy blocked.
    def check_network(self):
        for url in self.browser.take_requests():
            self.assertTrue(url.startswith((self.server.address, 'blob:' + self.server.address, 'data:,', 'chrome')), url)

    # Chromium logs answers with an error status.
    def is_expected(self, message):
        return 'Failed to load resource' in message or 'ERR_INCOMPLETE_CHUNKED_ENCODING' in message

    def load(self):
        self.browser.get(self.server.address)
        self.wait(lambda: self.find('#checkpoint-0 option:not([value=""])'))

    # -- shorthand

    def wait(self, condition, seconds=10):
        return WebDriverWait(self.browser, seconds, 0.02).until(lambda _: condition())

    def find(self, selector):
        found = self.all(selector)
        return found[0] if found else None

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).text

    # The text of an element that may be replaced meanwhile.
    def content(self, selector):
        return self.script('return document.querySelector(arguments[0])?.textContent', selector)

    def click(self, selector):
        self.wait(lambda: self.find(selector) and self.find(selector).is_displayed())
        self.find(selector).click()

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    # Runs an async function body with names imported from a module of the page.
    def module(self, path, text, *arguments):
        result = self.browser.execute_async_script(
            'const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1);'
            f'import("/{path}").then(async (m) => {{ {text} }}).then((value) => done({{value}}), (error) => done({{error: String(error)}}));',
            *arguments)
        self.assertNotIn('error', result)
        return result.get('value')

    def focused(self):
        return self.script('return document.activeElement.id || document.activeElement.getAttribute("aria-label")')

    # Each fault that axe-core finds, with the elements that have it.
    def faults(self):
        self.browser.run_beside_policy(AXE.read_text())
        return self.browser.execute_async_script('''
            const done = arguments[arguments.length - 1];
            axe.run().then(({violations}) => done(violations.map(({id, nodes}) => [id, ...nodes.map((node) => node.html)])),
                           (error) => done(String(error)));''')

    # Elements that reach out of the window.
    def overflowing(self):
        return self.script('''
            return [...document.querySelectorAll('#main *')].filter((node) => {
              const box = node.getBoundingClientRect();
              const scrolls = node.closest('.table, pre, .off-screen, .icon');
              return !scrolls && box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
            }).map((node) => node.id || node.className || node.localName);''')

    def idle(self):
        return not self.find('#stop').is_displayed()

    def send(self, text, wait=True):
        box = self.find('#message')
        box.send_keys(text, Keys.ENTER)
        self.wait(lambda: any(node.text == text.strip() for node in self.all('.bubble')))
        if wait:
            self.wait(self.idle)

    def answer(self):
        return self.all('.answer > .markdown')[-1].text

    # Asks for an answer that takes seconds; returns when this word of it is there.
    def start_long_answer(self, word):
        self.server.delay = 0.02
        self.send('long', wait=False)
        self.wait(lambda: word in self.answer())

    # The button appears when the pointer is at the question.
    def edit(self, index):
        ActionChains(self.browser).move_to_element(self.all('.bubble')[index]).perform()
        self.all('[aria-label="Edit and resend"]')[index].click()

    # A button of a conversation in the list, which shows it when the pointer is there.
    def item_button(self, index, label):
        row = self.all('#conversation-list li')[index]
        ActionChains(self.browser).move_to_element(row).perform()
        return row.find_element(By.CSS_SELECTOR, f'[aria-label="{label}"]')


class ChatTest(PageTest):
    def test_types_and_streams(self):
        self.server.delay = 0.05
        self.send('think', wait=False)
        self.wait(lambda: self.answer() == 'Then the answer 😀.')
        self.wait(self.idle)
        self.assertEqual(self.text('.speaker'), 'full_sft_768')
        self.assertRegex(self.text('.statistics'), r'tokens/s\s+first token \d+\.\d+ s\s+\d+ of 8192 tokens of context')
        body = self.server.requests[-1]
        self.assertEqual(body['messages'], [{'role': 'user', 'content': 'think'}])
        self.assertEqual(body['chat_template_kwargs'], {'open_thinking': False})
        self.assertTrue(body['stream'] and body['stream_options']['include_usage'])
        self.assertLessEqual(set(body), {'model', 'messages', 'stream', 'stream_options', 'chat_template_kwargs'})

    def test_answer_appears_before_it_is_complete(self):
        self.send('long', wait=False)
        self.wait(lambda: 'word20' in self.answer())
        self.assertNotIn('word399', self.answer())
        self.assertFalse(self.idle())
        self.wait(self.idle)
        self.assertEqual(self.answer(), LONG)

    def test_characters_cut_between_chunks_stay_whole(self):
        self.send(POEM_QUESTION)
        self.assertEqual(self.answer().replace('\n', ''), POEM.replace('\n', ''))
        self.assertIn('央，\n一灯', self.answer())

    def test_stop_keeps_the_text_and_continue_extends_it(self):
        self.start_long_answer('word5')
        self.click('#stop')
        self.wait(self.idle)
        self.wait(lambda: self.server.disconnects == 1)
        self.assertEqual(self.focused(), 'message')
        stopped = self.answer()
        self.assertTrue(LONG.startswith(stopped))
        self.assertIn('Stopped', self.text('.statistics'))
        self.click('.continue')
        self.wait(lambda: self.idle() and self.answer().endswith(' and its end.'))
        self.assertTrue(self.answer().startswith(stopped))
        body = self.server.requests[-1]
        self.assertEqual(body['messages'][-1]['role'], 'assistant')
        self.assertEqual(body['messages'][-1]['content'].strip(), stopped)
        self.assertEqual((body['continue_final_message'], body['add_generation_prompt']), (True, False))

    def test_continue_after_the_limit(self):
        self.send('cut')
        self.assertIn('limit of tokens', self.text('.statistics'))
        self.click('.continue')
        self.wait(lambda: self.answer() == 'A start and its end.')

    def test_deleted_while_it_is_written_stays_deleted(self):
        self.start_long_answer('word1')
        self.item_button(0, 'Delete').click()
        self.wait(self.idle)
        self.wait(lambda: self.server.disconnects == 1)
        self.load()
        self.assertEqual(self.all('#conversation-list li'), [])

    def test_new_chat_while_an_answer_is_written_keeps_both(self):
        self.start_long_answer('word1')
        self.click('#new-chat')
        self.send('next')
        self.assertEqual([node.text for node in self.all('#conversation-list .title')], ['next', 'long'])
        self.all('#conversation-list .title')[1].click()
        self.wait(lambda: 'word1' in self.answer())
        self.assertIn('Stopped', self.text('.statistics'))

    def test_escape_stops(self):
        self.start_long_answer('word1')
        self.find('#message').send_keys(Keys.ESCAPE)
        self.wait(self.idle, 1)

    def test_edit_and_resend(self):
        self.send('one')
        self.send('two')
        self.edit(0)
        self.assertEqual(self.focused(), 'Edited message')
        editor = self.find('.editor textarea')
        self.assertIn('kept', self.text('.editor .note'))
        editor.send_keys(Keys.END, ' again', Keys.ENTER)
        self.wait(lambda: self.idle() and self.answer() == 'full_sft_768: one again')
        self.assertEqual([node.text for node in self.all('.bubble')], ['one again'])
        self.assertEqual(self.server.requests[-1]['messages'], [{'role': 'user', 'content': 'one again'}])

    def test_editing_can_be_cancelled(self):
        self.send('one')
        self.edit(0)
        self.find('.editor textarea').send_keys(' more', Keys.ESCAPE)
        self.assertEqual(self.text('.bubble'), 'one')
        self.assertEqual(self.focused(), 'Edit and resend')

    def test_thinking_is_requested_and_folded(self):
        self.click('#think')
        self.send('think')
        self.assertEqual(self.server.requests[-1]['chat_template_kwargs'], {'open_thinking': True})
        thoughts = self.find('.thoughts')
        self.assertIsNone(thoughts.get_attribute('open'))
        self.assertEqual(thoughts.text, 'Thoughts')
        thoughts.find_element(By.TAG_NAME, 'summary').click()
        self.assertIn('First a thought.', thoughts.text)
        self.load()
        self.assertEqual(self.find('#think').get_attribute('aria-pressed'), 'true')
        self.send('next')
        self.assertEqual(self.server.requests[-1]['messages'][1], {
            'role': 'assistant', 'content': 'Then the answer 😀.', 'reasoning_content': 'First a thought.'})

    def test_switch_of_thinking_is_there_if_a_model_minds_it(self):
        self.click('#think')
        self.server.models = [model('plain', context_length=64, thinking=False), model('thinker', context_length=64, thinking=True)]
        self.load()
        self.assertFalse(self.find('#think').is_displayed())
        self.send('think')
        self.assertEqual(self.server.requests[-1]['chat_template_kwargs'], {'open_thinking': False})
        self.click('#compare')
        self.assertTrue(self.find('#think').is_displayed())
        self.send('think')
        self.assertEqual({body['model']: body['chat_template_kwargs']['open_thinking'] for body in self.server.requests[-2:]},
                         {'plain': False, 'thinker': True})
        self.click('#compare')
        self.assertFalse(self.find('#think').is_displayed())
        Select(self.find('#checkpoint-0')).select_by_visible_text('thinker')
        self.assertTrue(self.find('#think').is_displayed())

    def test_starters_fit_the_model(self):
        starters = lambda: [node.text for node in self.all('#starters button')]
        self.assertEqual(starters(), ['Introduce yourself', 'Write a seven-character quatrain titled “Autumn Night”', 'Why is the sky blue?'])
        self.server.models = [model('minimind-poet', thinking=False), *self.server.models]
        self.script('localStorage.clear()')
        self.load()
        self.assertEqual([text.split('\n')[0] for text in starters()],
                         [POEM_QUESTION, '以“山居”为题写一首五言律诗', '续写：空山新雨后，'])
        self.assertEqual(self.text('#welcome-title'), 'Which poem shall I write?')
        self.assertIn('Chinese poems', self.text('#welcome-note'))
        self.assertEqual(starters()[0].split('\n')[1], 'A quatrain with lines of seven, “Autumn Night”')
        self.click('#language')
        self.assertEqual(starters()[0], POEM_QUESTION)
        self.all('#starters button')[0].click()
        self.wait(lambda: self.all('.answer') and self.idle())
        self.assertEqual(self.server.requests[-1]['messages'], [{'role': 'user', 'content': POEM_QUESTION}])

    def test_tool_calls_wait_for_results(self):
        self.click('#open-settings')
        self.click('#tools-example')
        self.assertEqual(self.text('#tools-state'), '1 tool.')
        self.find('#tools').send_keys(Keys.END)
        self.click('#close-settings')
        self.send('weather?')
        self.assertEqual(self.server.requests[-1]['tools'][0]['function']['name'], 'get_weather')
        self.assertEqual(len(self.all('.call')), 2)
        self.assertIn('"city": "北京"', self.all('.call pre')[0].text)
        self.assertEqual(self.focused(), 'Result of get_weather')
        self.assertEqual(len(self.server.requests), 1)  # nothing was executed
        for box, result in zip(self.all('.call textarea'), ('21', '<b>30</b>')):
            box.send_keys(result)
        self.click('.calls .primary')
        self.wait(lambda: self.idle() and self.answer() == 'It is 21, <b>30</b>')
        call, *results = self.server.requests[-1]['messages'][1:]
        self.assertEqual([c['id'] for c in call['tool_calls']], ['call_0', 'call_1'])
        self.assertEqual(json.loads(call['tool_calls'][1]['function']['arguments']), {'city': '上海'})
        self.assertEqual(results, [{'role': 'tool', 'tool_call_id': 'call_0', 'content': '21'},
                                   {'role': 'tool', 'tool_call_id': 'call_1', 'content': '<b>30</b>'}])

    def test_what_turned_out_to_be_no_call_is_text_alone(self):
        self.send('broken call')
        self.wait(lambda: self.idle() and self.answer() == '{"city": oops}')
        self.assertEqual(self.all('.call'), [])
        self.send('hello')
        self.assertNotIn('tool_calls', self.server.requests[-1]['messages'][1])

    def test_invalid_tools_are_reported_and_not_sent(self):
        self.click('#open-settings')
        self.find('#tools').send_keys('[{"type": "function"}]')
        self.assertIn('Not used', self.text('#tools-state'))
        self.send('hello')
        self.assertNotIn('tools', self.server.requests[-1])

    def test_two_checkpoints_answer_side_by_side(self):
        self.click('#compare')
        Select(self.find('#checkpoint-1')).select_by_visible_text('pretrain_768')
        self.send('hello')
        self.assertEqual([node.text for node in self.all('.speaker')], ['full_sft_768', 'pretrain_768'])
        self.assertEqual([node.text for node in self.all('.answer > .markdown:nth-child(2)')],
                         ['full_sft_768: hello', 'pretrain_768: hello'])
        left, right = (node.rect for node in self.all('.lane'))
        self.assertEqual(left['y'], right['y'])
        self.assertLess(left['x'] + left['width'], right['x'])
        self.send('again')
        for body in self.server.requests[-2:]:
            self.assertEqual(body['messages'][1], {'role': 'assistant', 'content': f'{body["model"]}: hello'})
        self.click('#compare')
        self.send('alone')
        self.assertEqual(self.server.requests[-1]['messages'][3]['content'], 'full_sft_768: again')

    def test_lora_is_part_of_the_model_name(self):
        Select(self.find('#lora-0')).select_by_visible_text('medical')
        self.send('hello')
        self.assertEqual(self.server.requests[-1]['model'], 'full_sft_768:medical')
        Select(self.find('#lora-0')).select_by_visible_text('no LoRA')
        self.send('again')
        self.assertEqual(self.server.requests[-1]['model'], 'full_sft_768')

    def test_the_list_follows_the_folder_of_the_server(self):
        self.server.models = [*self.server.models, {'id': 'saved_later', 'object': 'model'}]
        self.browser.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
        self.wait(lambda: self.all('#checkpoint-0 option[value="saved_later"]'))

    def test_a_longer_context_is_shown_below_answers_whose_buttons_stay(self):
        self.send('hello')
        copy = self.find('.actions button')
        self.server.models = [model('full_sft_768', context_length=123)]
        self.browser.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
        self.wait(lambda: 'of 123 tokens' in self.content('.statistics'))
        self.assertTrue(copy.is_displayed())

    def test_system_prompt_is_sent_first(self):
        self.click('#open-settings')
        self.find('#system').send_keys('Be brief.')
        self.send('hello')
        self.assertEqual(self.server.requests[-1]['messages'][0], {'role': 'system', 'content': 'Be brief.'})

    def test_answer_is_copied(self):
        self.send('think')
        self.click('[aria-label="Copy the answer"]')
        self.wait(lambda: self.find('.icon-button.done'))
        self.find('#message').send_keys(Keys.CONTROL, 'v')
        self.assertEqual(self.find('#message').get_attribute('value'), 'Then the answer 😀.')

    def test_only_changed_sampling_is_sent_until_reset(self):
        self.click('#open-settings')
        self.assertEqual(self.find('#sampling-temperature').get_attribute('placeholder'), '0.7')  # the server's
        self.assertEqual(self.find('#sampling-top_k').get_attribute('placeholder'), '50')
        self.find('#sampling-temperature').send_keys('0.5')
        self.find('#sampling-max_tokens').send_keys('64')
        self.click('.more summary')
        self.find('#sampling-stop').send_keys('END\n\nSTOP')
        self.send('hello')
        body = self.server.requests[-1]
        self.assertEqual((body['temperature'], body['max_tokens'], body['stop']), (0.5, 64, ['END', 'STOP']))
        self.assertNotIn('top_p', body)
        self.find('#sampling-top_k').send_keys('-1')
        self.assertIn('expected a whole number from 0 to', self.text('#sampling-top_k-error'))
        self.click('#reset-sampling')
        self.send('again')
        self.assertFalse({'temperature', 'max_tokens', 'stop', 'top_k'} & set(self.server.requests[-1]))


class VersionsTest(PageTest):
    # The texts between the arrows of a turn, of its question and of its answer; empty for what has one version.
    def places(self, turn=0):
        node = self.all('.turn')[turn]
        return [node.find_element(By.CSS_SELECTOR, f'.{of}-versions').text for of in ('question', 'answer')]

    def arrow(self, of, label, turn=0):
        return self.all('.turn')[turn].find_element(By.CSS_SELECTOR, f'.{of}-versions [aria-label="{label} version"]')

    def regenerate(self, turn=0):
        before = len(self.server.requests)
        self.all('[aria-label="Regenerate"]')[turn].click()
        self.wait(lambda: len(self.server.requests) > before and self.idle())

    def edit(self, text, turn=0):
        ActionChains(self.browser).move_to_element(self.all('.bubble')[turn]).perform()
        self.all('[aria-label="Edit and resend"]')[turn].click()
        self.find('.editor textarea').send_keys(Keys.CONTROL, 'a')
        self.find('.editor textarea').send_keys(text, Keys.ENTER)
        self.wait(lambda: self.idle() and any(node.text == text for node in self.all('.bubble')))

    def texts(self):
        return [[node.text for node in self.all(selector)] for selector in ('.bubble', '.answer > .markdown:nth-child(2)')]

    def test_regenerated_answer_keeps_the_old_one_and_what_followed(self):
        self.send('one')
        self.send('two')
        self.assertEqual(self.places(), ['', ''])
        Select(self.find('#checkpoint-0')).select_by_visible_text('grpo_768')
        self.regenerate()
        self.assertEqual(self.texts(), [['one'], ['grpo_768: one']])
        self.assertEqual(self.places(), ['', '2 / 2'])
        self.arrow('answer', 'Previous').click()
        self.assertEqual(self.texts(), [['one', 'two'], ['full_sft_768: one', 'full_sft_768: two']])
        self.assertEqual((self.places(0), self.places(1)), (['', '1 / 2'], ['', '']))
        self.send('three')
        self.assertEqual([message['content'] for message in self.server.requests[-1]['messages']],
                         ['one', 'full_sft_768: one', 'two', 'full_sft_768: two', 'three'])
        self.arrow('answer', 'Next').click()
        self.assertEqual(self.texts(), [['one'], ['grpo_768: one']])

    def test_edited_question_keeps_the_old_one_with_its_answers(self):
        self.send('one')
        self.regenerate()
        self.edit('two')
        self.send('three')
        self.edit('four')
        self.assertEqual(self.texts()[0], ['four'])
        self.assertEqual(self.places(), ['3 / 3', ''])
        self.arrow('question', 'Previous').click()
        self.assertEqual(self.texts()[0], ['two', 'three'])
        self.arrow('question', 'Previous').click()
        self.assertEqual((self.texts()[0], self.places()), (['one'], ['1 / 3', '2 / 2']))
        self.regenerate()
        self.assertEqual(self.places(), ['1 / 3', '3 / 3'])
        self.arrow('answer', 'Previous').click()
        self.assertEqual(self.places(), ['1 / 3', '2 / 3'])

    def test_versions_are_stored_searched_and_exported(self):
        self.send('one')
        self.send('two')
        self.regenerate(1)
        self.edit('three')
        self.load()
        self.assertEqual((self.texts()[0], self.places()), (['three'], ['2 / 2', '']))
        self.arrow('question', 'Previous').click()
        self.load()
        self.assertEqual((self.texts()[0], self.places(1)), (['one', 'two'], ['', '2 / 2']))
        self.find('#search').send_keys('three')
        self.assertEqual(len(self.all('#conversation-list li')), 1)
        exported = self.module('conversations.js', 'return m.exportConversation(m.allConversations()[0]);')
        self.assertEqual([message['content'] for message in exported['messages']],
                         ['one', 'full_sft_768: one', 'two', 'full_sft_768: two'])
        imported = self.module('conversations.js', '''
            const [imported] = m.importConversations(JSON.stringify(given[0]));
            m.keepConversation(imported);
            localStorage.setItem('minimind.current', JSON.stringify(imported.id));
            return m.exportConversation(m.loadConversation(imported.id));''', exported)
        self.assertEqual(imported, exported)
        self.load()
        self.assertEqual((self.places(0), self.places(1)), (['1 / 2', ''], ['', '2 / 2']))
        self.arrow('question', 'Next').click()
        self.assertEqual(self.texts(), [['three'], ['full_sft_768: three']])

    def test_import_joins_a_result_in_several_messages(self):
        call = {'id': 'a', 'type': 'function', 'function': {'name': 'f', 'arguments': '{}'}}
        results = [{'role': 'tool', 'tool_call_id': of, 'content': content} for of, content in (('a', '1'), ('a', '2'), ('b', '3'))]
        messages = self.module('conversations.js', '''
            return m.exportConversation(m.importConversations(JSON.stringify(given[0]))[0]).messages;''',
            {'messages': [{'role': 'user', 'content': 'x'},
                          {'role': 'assistant', 'content': '', 'tool_calls': [call, {**call, 'id': 'b'}]}, *results]})
        self.assertEqual([message['content'] for message in messages if message['role'] == 'tool'], ['1\n2', '3'])

    def test_import_of_bad_versions_says_so(self):
        one = {'messages': [{'role': 'user', 'content': 'x'}]}
        for versions in (3, [3], [{'turn': 1, 'at': 0, 'others': [one]}], [{'turn': 0, 'at': 2, 'others': [one]}],
                         [{'turn': 0, 'at': 0, 'others': [{}]}], [{'turn': 0, 'at': 0, 'others': [one]}] * 2):
            message = self.module('conversations.js', '''
                try { m.importConversations(JSON.stringify(given[0])); } catch (error) { return error.message; }''',
                {**one, 'versions': versions})
            self.assertEqual(message, 'its versions are not as this page exports them', versions)

    def test_import_of_versions_that_are_nested_too_deeply_says_so(self):
        message = self.module('conversations.js', '''
            const messages = '[{"role": "user", "content": "x"}]';
            const start = `{"messages": ${messages}, "versions": [{"turn": 0, "at": 0, "others": [`;
            const nested = (depth) => `${start.repeat(depth)}{"messages": ${messages}}${']}]}'.repeat(depth)}`;
            m.importConversations(nested(100));
            try { m.importConversations(nested(1800)); } catch (error) { return error.message; }''')
        self.assertEqual(message, 'its versions are not as this page exports them')

    def test_conversation_without_versions_is_read(self):
        self.script('''
            const lanes = [{model: 'grpo_768', messages: [{role: 'assistant', content: 'old answer'}]}];
            localStorage.setItem('minimind.conversation.old', JSON.stringify({id: 'old', title: '', changed: 1, system: '', tools: [],
                models: ['grpo_768'], turns: [{question: 'old', lanes}]}));
            sessionStorage.setItem('minimind.current', '"old"');''')
        self.load()
        self.assertEqual(self.texts(), [['old'], ['old answer']])
        self.regenerate()
        self.assertEqual(self.places(), ['', '2 / 2'])

    def test_versions_of_compared_answers(self):
        self.click('#compare')
        self.send('both')
        self.all('[aria-label="Regenerate"]')[1].click()
        self.wait(lambda: len(self.server.requests) == 3 and self.idle())
        self.assertEqual(self.places(), ['', '2 / 2'])
        self.assertEqual(self.texts()[1], ['full_sft_768: both', 'grpo_768: both'])

    def test_arrows_by_keyboard_and_screen_reader(self):
        self.send('one')
        self.regenerate()
        self.regenerate()
        group = self.find('.answer-versions [role="group"]')
        self.assertEqual(group.get_attribute('aria-label'), 'Versions of the answer')
        self.assertFalse(self.arrow('answer', 'Next').is_enabled())
        self.arrow('answer', 'Previous').send_keys(Keys.ENTER)
        self.assertEqual((self.places(), self.focused()), (['', '2 / 3'], 'Previous version'))
        self.assertEqual(self.script('return document.getElementById("announcer").textContent'), 'Version 2 of 3')
        ActionChains(self.browser).send_keys(Keys.ENTER).perform()
        self.assertEqual((self.places(), self.focused()), (['', '1 / 3'], 'Next version'))

    def test_no_version_is_chosen_while_an_answer_is_written(self):
        self.send('one')
        self.regenerate()
        self.start_long_answer('word1')
        self.assertFalse(self.find('.answer-versions button').is_displayed())
        self.click('#stop')
        self.wait(lambda: self.find('.answer-versions button').is_displayed())


class KeysTest(PageTest):
    @unittest.skipIf(browsers.NAME == 'firefox', 'its driver has no input methods')
    def test_enter_of_an_input_method_does_not_send(self):
        box = self.find('#message')
        box.click()
        self.browser.execute_cdp_cmd('Input.imeSetComposition', {'text': 'qiuye', 'selectionStart': 5, 'selectionEnd': 5})
        composing = self.script('''
            const event = new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true});
            return arguments[0].dispatchEvent(event);''', box)
        self.assertTrue(composing)  # the default, which ends the composition, is not prevented
        safari = self.script('''
            return arguments[0].dispatchEvent(new KeyboardEvent('keydown',
                {key: 'Enter', keyCode: 229, bubbles: true, cancelable: true}));''', box)
        self.assertTrue(safari)
        self.browser.execute_cdp_cmd('Input.insertText', {'text': '秋夜'})
        self.assertEqual(self.server.requests, [])
        self.assertEqual(box.get_attribute('value'), '秋夜')
        box.send_keys(Keys.ENTER)
        self.wait(lambda: self.server.requests)
        self.assertEqual(self.server.requests[0]['messages'][0]['content'], '秋夜')

    def test_shift_enter_starts_a_line(self):
        box = self.find('#message')
        box.send_keys('one')
        ActionChains(self.browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).send_keys('two').perform()
        self.assertEqual(box.get_attribute('value'), 'one\ntwo')
        self.assertEqual(self.server.requests, [])

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def tab_to(self, name, key=Keys.TAB):
        for _ in range(60):
            if self.focused() == name:
                return
            if key == Keys.TAB:
                self.press(Keys.TAB)
            else:
                ActionChains(self.browser).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
        self.fail(f'{name} is not reached by Tab')

    def test_everything_is_reached_by_keyboard(self):
        self.assertEqual(self.focused(), 'message')
        self.press('hello', Keys.ENTER)
        self.wait(lambda: self.idle() and self.all('.answer'))
        self.tab_to('Regenerate', 'back')
        self.press(Keys.ENTER)
        self.wait(lambda: len(self.server.requests) == 2)
        self.wait(self.idle)
        self.find('#message').send_keys('')
        self.tab_to('open-settings', 'back')
        self.press(Keys.ENTER)
        self.wait(lambda: self.focused() == 'system')
        self.press(Keys.ESCAPE)
        self.wait(lambda: self.focused() == 'open-settings')
        self.tab_to('chat-tab', 'back')
        self.press(Keys.ARROW_RIGHT)
        self.assertEqual(self.focused(), 'completion-tab')
        self.assertTrue(self.find('#completion').is_displayed())
        self.tab_to('prompt')
        self.press('月')
        ActionChains(self.browser).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
        self.wait(lambda: len(self.all('.token')) == 11)
        self.wait(lambda: self.find('#complete').is_displayed())
        self.tab_to('月: 62%')
        self.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(self.focused(), '乌: 90%')
        self.assertIn('91%', self.text('#token-details'))

    def test_every_control_has_a_name(self):
        self.click('#open-settings')
        self.click('.more summary')
        self.send('weather?')
        unnamed = self.script('''
            return [...document.querySelectorAll('button, input, textarea, select, a[href], summary')].filter((node) => {
              const label = node.getAttribute('aria-label') || node.textContent.trim() || node.labels?.[0]?.textContent.trim();
              return !label && node.type !== 'file';
            }).map((node) => node.outerHTML);''')
        self.assertEqual(unnamed, [])
        ids = self.script('return [...document.querySelectorAll("[id]")].map((node) => node.id)')
        self.assertEqual(len(ids), len(set(ids)))

    def test_axe_finds_no_fault(self):
        self.assertEqual(self.faults(), [])
        for text in ('markdown', 'weather?', 'busy'):
            self.send(text)
        self.all('[aria-label="Regenerate"]')[0].click()
        self.wait(self.idle)
        for text in ('formulas', 'cut'):
            self.send(text)
        self.click('#compare')
        self.click('#think')
        self.send('think')
        self.assertTrue(self.all('.versions'))
        self.script('document.querySelectorAll("details").forEach((node) => { node.open = true; })')
        for theme in ('light', 'dark'):
            self.script('document.documentElement.dataset.theme = arguments[0]', theme)
            self.assertEqual(self.faults(), [], theme)
        self.click('#open-settings')
        self.assertEqual(self.faults(), [])
        self.click('#close-settings')
        self.click('#completion-tab')
        self.find('#prompt').send_keys('月')
        self.click('#complete')
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) == 11)
        self.all('.token')[3].click()
        self.assertEqual(self.faults(), [])
        self.browser.set_view(390, 800)
        self.addCleanup(self.browser.reset_view)
        self.wait(lambda: not self.find('#sidebar').is_displayed())
        for tab in ('#completion-tab', '#chat-tab', '#open-sidebar'):
            self.click(tab)
            self.assertEqual(self.faults(), [], tab)

    def test_headings_name_the_conversation_and_leave_out_no_level(self):
        headings = lambda: self.script('''
            return [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter((node) => node.checkVisibility())
                .map((node) => `${node.localName} ${node.textContent}`);''')
        self.assertEqual(headings(), ['h1 New chat', 'h2 What shall we talk about?'])
        self.send('markdown')
        self.assertEqual(headings(), ['h1 markdown', 'h2 You', 'h2 full_sft_768', 'h3 秋夜的写法'])
        self.click('#completion-tab')
        self.assertEqual(headings(), ['h1 Continuation'])

    def test_screen_readers_hear_the_answer_once(self):
        self.script('''
            window.spoken = [];
            new MutationObserver(() => spoken.push(document.getElementById('announcer').textContent))
                .observe(document.getElementById('announcer'), {childList: true});''')
        self.send('think')
        self.wait(lambda: len(self.script('return spoken')) == 2)
        self.assertEqual(self.script('return spoken'), ['The model is answering.', 'Answer: Then the answer 😀.'])
        self.assertEqual(self.script('return document.querySelector("#turns").closest("[aria-live], [role=log]")'), None)


class ConversationsTest(PageTest):
    def titles(self):
        return [node.text for node in self.all('#conversation-list .title')]

    def test_reload_finds_the_conversation(self):
        self.send('first')
        self.send('second')
        self.load()
        self.assertEqual([node.text for node in self.all('.bubble')], ['first', 'second'])
        self.assertEqual(self.answer(), 'full_sft_768: second')
        self.assertEqual(self.titles(), ['first'])
        self.send('third')
        self.assertEqual(len(self.server.requests[-1]['messages']), 5)

    def test_reload_in_the_middle_keeps_the_text_so_far(self):
        self.start_long_answer('word9')
        self.load()
        self.assertIn('word9', self.answer())
        self.assertTrue(LONG.startswith(self.answer()))

    def test_reload_keeps_what_is_not_sent_yet(self):
        self.find('#message').send_keys('half a ques')
        self.load()
        self.assertEqual(self.find('#message').get_attribute('value'), 'half a ques')
        self.assertTrue(self.find('#send').is_enabled())
        self.find('#message').send_keys('tion', Keys.ENTER)
        self.wait(self.idle)
        self.load()
        self.assertEqual(self.find('#message').get_attribute('value'), '')

    # What another tab does to the kept conversation: it adds a question, and this tab is told.
    def ask_in_another_tab(self, question):
        self.script('''
            const name = Object.keys(localStorage).find((key) => key.startsWith('minimind.conversation.'));
            const kept = JSON.parse(localStorage.getItem(name));
            kept.changed += 1000;
            kept.turns.push({question: arguments[0], lanes: [{model: 'full_sft_768', messages: []}]});
            localStorage.setItem(name, JSON.stringify(kept));
            dispatchEvent(new StorageEvent('storage', {key: name}));''', question)

    def test_what_two_tabs_add_to_one_conversation_stays(self):
        self.start_long_answer('word9')
        self.ask_in_another_tab('from another tab')
        self.click('#stop')
        self.wait(lambda: len(self.titles()) == 2)
        self.assertIn('both versions are kept', self.text('#notice'))
        self.assertEqual([node.text for node in self.all('.bubble')], ['long'])
        self.load()
        self.assertIn('word9', self.answer())
        self.all('#conversation-list li:not(.current) .title')[0].click()
        self.assertEqual([node.text for node in self.all('.bubble')], ['long', 'from another tab'])

    def test_what_another_tab_adds_is_shown_in_place(self):
        for _ in range(3):
            self.send('markdown')
        self.script('document.getElementById("chat-scroll").scrollTop = 100')
        self.ask_in_another_tab('from another tab')
        self.assertEqual(len(self.all('.bubble')), 4)
        self.assertEqual(self.script('return document.getElementById("chat-scroll").scrollTop'), 100)
        self.edit(0)
        self.ask_in_another_tab('and again')
        self.assertEqual(self.focused(), 'Edited message')
        self.find('.editor textarea').send_keys(Keys.ESCAPE)
        self.assertEqual(len(self.all('.bubble')), 4)
        self.find('#conversation-list .title').click()
        self.assertEqual(len(self.all('.bubble')), 5)
        self.edit(0)
        self.ask_in_another_tab('once more')
        self.find('.editor textarea').send_keys(' more', Keys.ENTER)
        self.wait(lambda: self.idle() and len(self.titles()) == 2)
        self.assertEqual(len(self.all('.bubble')), 1)

    def test_what_is_typed_is_not_lost_to_another_tab(self):
        self.send('weather?')
        self.find('.call textarea').send_keys('21')
        self.ask_in_another_tab('from another tab')
        self.assertEqual(self.find('.call textarea').get_attribute('value'), '21')
        self.click('#open-settings')
        self.find('#system').send_keys('Be brief.')
        self.wait(lambda: len(self.titles()) == 2)

    def test_settings_of_another_tab_are_shown(self):
        self.send('hello')
        self.script('''
            const name = Object.keys(localStorage).find((key) => key.startsWith('minimind.conversation.'));
            const kept = {...JSON.parse(localStorage.getItem(name)), changed: 1, system: 'Be brief.', title: 'Brief'};
            localStorage.setItem(name, JSON.stringify(kept));
            dispatchEvent(new StorageEvent('storage', {key: name}));''')
        self.assertEqual(self.find('#system').get_attribute('value'), 'Be brief.')
        self.assertIn('Brief', self.script('return document.title'))

    def test_undo_keeps_what_another_tab_has_made_of_it(self):
        self.send('hello')
        kept = self.script('return Object.entries(localStorage).find(([key]) => key.startsWith("minimind.conversation."))')
        self.item_button(0, 'Delete').click()
        self.script('localStorage.setItem(arguments[0], arguments[1])', *kept)
        self.click('#notice button')
        self.wait(lambda: self.titles() == ['hello', 'hello'])

    def test_a_reload_shows_the_conversation_of_the_tab(self):
        self.send('mine')
        self.click('#new-chat')
        self.send('of another tab')
        other = self.script('return localStorage.getItem("minimind.current")')
        self.all('#conversation-list .title')[1].click()
        self.script('localStorage.setItem("minimind.current", arguments[0])', other)
        self.load()
        self.assertEqual([node.text for node in self.all('.bubble')], ['mine'])

    def test_an_answer_goes_on_when_its_conversation_is_chosen_or_renamed(self):
        self.start_long_answer('word1')
        self.item_button(0, 'Rename').click()
        self.find('#conversation-list input').send_keys('Words', Keys.ENTER)
        self.assertEqual(self.titles(), ['Words'])
        self.all('#conversation-list .title')[0].click()
        so_far = self.answer()
        self.wait(lambda: len(self.answer()) > len(so_far))
        self.assertFalse(self.idle())

    def test_list_is_searched(self):
        for text in ('apple', 'pear'):
            self.send(text)
            self.click('#new-chat')
        self.assertEqual(self.titles(), ['pear', 'apple'])
        self.find('#search').send_keys('SFT_768: APP')  # in the answer
        self.assertEqual(self.titles(), ['apple'])
        self.find('#search').send_keys('x')
        self.assertEqual(self.titles(), [])
        self.assertEqual(self.text('#list-note'), 'No conversation matches.')

    def test_rename_delete_and_undo(self):
        self.send('apple')
        self.item_button(0, 'Rename').click()
        self.find('#conversation-list input').send_keys('Fruit <b>', Keys.ENTER)
        self.assertEqual(self.titles(), ['Fruit <b>'])
        self.load()
        self.assertEqual(self.titles(), ['Fruit <b>'])
        self.item_button(0, 'Delete').click()
        self.assertEqual(self.titles(), [])
        self.assertEqual(self.all('.turn'), [])
        self.click('#notice button')
        self.wait(lambda: self.titles() == ['Fruit <b>'])
        self.assertEqual(self.answer(), 'full_sft_768: apple')

    def exported(self, name):
        path = pathlib.Path(self.downloads, name)
        self.wait(path.exists)
        value = json.loads(path.read_text())
        path.unlink()
        return path, value

    def test_export_and_import(self):
        self.click('#open-settings')
        self.find('#system').send_keys('Be brief.')
        self.click('#close-settings')
        self.click('#think')
        self.send('think')
        self.send('weather?')
        for box in self.all('.call textarea'):
            box.send_keys('21')
        self.click('.calls .primary')
        self.wait(lambda: self.idle() and self.answer() == 'It is 21, 21')
        self.item_button(0, 'Export as JSON').click()
        path, value = self.exported('think.json')
        self.assertEqual([message['role'] for message in value['messages']],
                         ['system', 'user', 'assistant', 'user', 'assistant', 'tool', 'tool', 'assistant'])
        self.assertEqual(value['messages'][2]['reasoning_content'], 'First a thought.')
        self.assertLessEqual(set().union(*value['messages']), {'role', 'content', 'reasoning_content', 'tool_calls', 'tool_call_id'})
        self.item_button(0, 'Delete').click()
        path.write_text(json.dumps(value))
        self.find('#import-files').send_keys(str(path))
        self.wait(lambda: self.titles() == ['think'])
        self.assertEqual(self.text('#notice'), 'Imported 1 conversation.')
        self.send('again')
        sent = self.server.requests[-1]['messages']
        self.assertEqual(sent[:-1], value['messages'])

    def test_export_of_all_and_of_a_comparison(self):
        self.click('#compare')
        self.send('both')
        self.click('#new-chat')
        self.click('#compare')
        self.send('one')
        self.click('#export-all')
        path, value = self.exported('minimind-conversations.json')
        self.assertEqual([entry['title'] for entry in value], ['one', 'both'])
        self.assertEqual(value[1]['compared_messages'][1]['content'], 'grpo_768: both')
        path.write_text(json.dumps(value))
        self.find('#import-files').send_keys(str(path))
        self.wait(lambda: len(self.titles()) == 4)

    def test_import_says_what_is_wrong(self):
        for text, reason in (('{', 'not JSON'), ('{"a": 1}', 'no list of messages'), ('{"messages": [{"role": "wizard"}]}', 'message 1')):
            path = pathlib.Path(self.downloads, 'bad.json')
            path.write_text(text)
            self.find('#import-files').send_keys(str(path))
            self.wait(lambda: reason in self.text('#notice'))
        self.assertEqual(self.titles(), [])

    def test_minimind_data_is_imported(self):
        path = pathlib.Path(self.downloads, 'data.json')
        path.write_text('{"conversations": [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "<img src=x onerror=alert(1)>"}]}')
        self.find('#import-files').send_keys(str(path))
        self.wait(lambda: self.titles() == ['你好'])
        self.assertEqual(self.answer(), '<img src=x onerror=alert(1)>')

    def test_corrupt_storage_is_ignored(self):
        self.script('localStorage.setItem("minimind.conversation.x", "{\\"id\\": 1"); localStorage.setItem("minimind.current", "\\"x\\"");'
                    'localStorage.setItem("minimind.conversation.y", "{\\"id\\": \\"y\\", \\"turns\\": [3]}");')
        self.load()
        self.assertEqual(self.titles(), [])
        self.send('hello')
        self.assertEqual(self.titles(), ['hello'])

    def test_kept_values_of_another_form_are_ignored(self):
        self.send('hello')
        for change in ('models = [null]', 'turns[0].lanes[0].messages[0].tool_calls = [{}]', 'turns[0].lanes[0].messages[0].reasoning_content = 5',
                       'turns[0].lanes[0].messages[0].info.speed = "fast"'):
            self.script(f'''
                const kept = JSON.parse(localStorage.getItem(arguments[0]));
                kept.{change};
                localStorage.setItem('minimind.conversation.other', JSON.stringify(kept));
                localStorage.setItem('minimind.current', '"other"');''', self.script(
                    'return Object.keys(localStorage).find((name) => /conversation\\.(?!other)/.test(name))'))
            self.load()
            self.assertEqual(self.titles(), ['hello'], change)
        for name, value in (('models', '"x"'), ('models', '[null]'), ('sampling', '{"stop": "x"}'), ('sampling', '5')):
            self.script('localStorage.clear(); localStorage.setItem(`minimind.${arguments[0]}`, arguments[1]);', name, value)
            self.load()
            self.send('hello')
            self.assertEqual(self.titles(), ['hello'], name)

    def test_exported_title_has_whole_characters(self):
        self.send('a' * 59 + '😀 and more')
        title = self.module('conversations.js', 'return m.exportConversation(m.allConversations()[0]).title;')
        self.assertEqual(title, 'a' * 59 + '…')


class HostileTest(PageTest):
    ALLOWED = {'p', 'h3', 'h4', 'h5', 'h6', 'hr', 'blockquote', 'ul', 'ol', 'li', 'figure', 'figcaption', 'pre', 'code', 'span', 'button',
               'svg', 'use', 'div', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'strong', 'em', 'del', 'a', 'input'}
    ATTRIBUTES = {'class', 'dir', 'href', 'target', 'rel', 'title', 'tabindex', 'type', 'start', 'aria-hidden', 'aria-label', 'disabled',
                  'checked'}

    def check_inert(self, selector):
        found = self.script('''
            const nodes = [...document.querySelectorAll(arguments[0] + ' *')];
            return {hacked: window.hacked ?? null, tags: [...new Set(nodes.map((node) => node.localName))],
                    attributes: [...new Set(nodes.flatMap((node) => node.getAttributeNames()))],
                    links: nodes.filter((node) => node.localName === 'a').map((node) => [node.href, node.target, node.rel])};''', selector)
        self.assertIsNone(found['hacked'])
        self.assertLessEqual(set(found['tags']), self.ALLOWED)
        self.assertLessEqual(set(found['attributes']), self.ATTRIBUTES)
        for href, target, rel in found['links']:
            self.assertRegex(href, '^https?://(good|bare|quote|other)\\.example/')
            self.assertEqual(target, '_blank')
            self.assertIn('noopener', rel)
        return found

    def test_model_output_is_inert(self):
        self.send('hostile')
        self.script('document.querySelector(".thoughts").open = true')
        found = self.check_inert('.answer > .markdown')
        self.check_inert('.thoughts .markdown')
        self.assertEqual(len(found['links']), 6)
        for text in ('<script>window.hacked = 1</script>', '<img src="x" onerror="window.hacked = 2">', '&lt;b&gt;', '<b>head</b>'):
            self.assertIn(text, self.answer())
        self.load()
        self.check_inert('.answer > .markdown')
        self.assertEqual(self.browser.current_url, self.server.address)

    def test_links_open_only_when_confirmed(self):
        self.send('hostile')
        windows = len(self.browser.window_handles)
        link = self.browser.find_element(By.LINK_TEXT, 'good')
        link.click()
        alert = self.browser.switch_to.alert
        self.assertIn('https://good.example/a?b=c', alert.text)
        alert.dismiss()
        self.assertEqual(len(self.browser.window_handles), windows)

    def test_tokens_of_a_continuation_are_inert(self):
        self.click('#completion-tab')
        self.find('#prompt').send_keys('hostile')
        self.click('#complete')
        self.wait(lambda: len(self.all('.token')) == 2)
        self.all('.token')[0].click()
        self.assertIsNone(self.script('return window.hacked ?? document.querySelector("#completion :is(img, script)")'))
        self.assertIn('onerror', self.all('.token')[0].text)

    def test_policy_blocks_what_the_page_does_not_do(self):
        blocked = self.module('elements.js', '''
            const result = {};
            try { document.body.innerHTML = '<b>x</b>'; result.html = 'set'; } catch (error) { result.html = error.name; }
            await fetch('http://other.example/').then(() => { result.fetch = 'sent'; }, (error) => { result.fetch = error.name; });
            const script = document.createElement('script');
            try { script.textContent = 'window.hacked = 1'; document.head.append(script); } catch {}
            result.hacked = window.hacked ?? null;
            return result;''')
        self.assertEqual(blocked, {'html': 'TypeError', 'fetch': 'TypeError', 'hacked': None})
        self.browser.take_errors()

    def test_no_foreign_request(self):
        self.send('hostile')
        self.send('markdown')
        origins = self.script('return performance.getEntriesByType("resource").map((entry) => new URL(entry.name).origin)')
        self.assertEqual(set(origins), {self.server.address.rstrip('/')})
        self.assertFalse([path for path in self.server.paths if 'x' == path.strip('/') or 'pixel' in path])


class MarkdownTest(PageTest):
    # Returns a compact form of the elements that a text becomes.
    def shown(self, text):
        return self.module('markdown.js', '''
            const box = document.createElement('div');
            m.showMarkdown(box, given[0]);
            const shape = (node) => node.nodeType === 3 ? node.data : node.localName === 'button' ? '' :
                `<${node.localName}>${[...node.childNodes].map(shape).join('')}</>`;
            return [...box.childNodes].map(shape).join('');''', text)

    def test_blocks(self):
        cases = {
            'a\nb\n\nc': '<p>a\nb</><p>c</>',
            '# One\n###### Two ##\n### Two\n#### Three\n# One': '<h3>One</><h4>Two</><h4>Two</><h5>Three</><h3>One</>',
            '## One\n> # Two\n> ### Two\n\n### Two': '<h3>One</><blockquote><h4>Two</><h4>Two</></><h4>Two</>',
            '#no heading': '<p>#no heading</>',
            '---': '<hr></>',
            '> a\n> > b': '<blockquote><p>a</><blockquote><p>b</></></>',
            '- a\n- b': '<ul><li><p>a</></><li><p>b</></></>',
            '1. a\n   - b\n2. c': '<ol><li><p>a</><ul><li><p>b</></></></><li><p>c</></></>',
            '```c\n<b>\n```\nx': '<figure><figcaption><span>c</></><pre><code><b></></></><p>x</>',
            '```\nopen': '<figure><figcaption><span>code</></><pre><code>open</></></>',
            '| a | b |\n|---|---|\n| `1` |': '<div><table><thead><tr><th>a</><th>b</></></><tbody><tr><td><code>1</></><td></></></></></>',
            '<div>\n<b>x</b>': '<p><div>\n<b>x</b></>',
        }
        for text, expected in cases.items():
            self.assertEqual(self.shown(text), expected, text)

    def test_inline(self):
        cases = {
            '**a** *b* `c*d*` ~~e~~': '<strong>a</> <em>b</> <code>c*d*</> <del>e</>',
            '先定**意境**，再求*声律*。': '先定<strong>意境</>，再求<em>声律</>。',
            'snake_case_name 2 * 3 * 4': 'snake_case_name 2 * 3 * 4',
            '**open and `open': '**open and `open',
            '***both***': '<strong><em>both</></>',
            '\\*plain\\* \\a': '*plain* \\a',
            '[a] [b](https://x.example/)': '[a] <a>b</>',
            '[x](javascript:alert(1))': '[x](javascript:alert(1))',
            '[x](//other.example)': '[x](//other.example)',
            'see https://x.example/a_b_c。': 'see <a>https://x.example/a_b_c</>。',
            '![i](https://x.example/i.png)': '!<a>i</>',
        }
        for text, expected in cases.items():
            self.assertEqual(self.shown(text), f'<p>{expected}</>', text)

    def test_formulas_stay_as_they_are(self):
        cases = {
            r'Let \( a_1 * b_1 * c \) and \[ x \\ y \] *be* \*it\*':
                r'<p>Let <span>\( a_1 * b_1 * c \)</> and <span>\[ x \\ y \]</> <em>be</> *it*</>',
            r'$\{a\}$, $$a__b__c$$ and $ a *b* $': r'<p><span>$\{a\}$</>, <span>$$a__b__c$$</> and <span>$ a *b* $</></>',
            r'**bold $a**b$ and `**`** on': r'<p><strong>bold <span>$a**b$</> and <code>**</></> on</>',
            'costs $5 and *not* $6, or US$7 and US$8': '<p>costs $5 and <em>not</> $6, or US$7 and US$8</>',
            r'`\( *a* \)` \$a_b\$ $a\$b$': r'<p><code>\( *a* \)</> $a_b$ <span>$a\$b$</></>',
            '$$\n\\begin{aligned}\n# a\n- b \\\\\n\n  > c\n$$\n*end*':
                '<p><span>$$\n\\begin{aligned}\n# a\n- b \\\\\n\n  > c\n$$</>\n<em>end</></>',
            'so:\n\\[\n1. a\n\\]\n- b': '<p>so:</><p><span>\\[\n1. a\n\\]</></><ul><li><p>b</></></>',
            'where \\( a\n  - b \\) *holds*': '<p>where <span>\\( a\n  - b \\)</> <em>holds</></>',
            '1. so\n\\[\n- a\n\\]\n2. b':
                '<ol><li><p>so</></></><p><span>\\[\n- a\n\\]</></><ol><li><p>b</></></>',
            '- so\n  \\[\n  - *a*\n  \\]': '<ul><li><p>so</><p><span>\\[\n- *a*\n\\]</></></></>',
            '\\begin{cases}\n* a\\\\\n\\end{cases}': '<p><span>\\begin{cases}\n* a\\\\\n\\end{cases}</></>',
            '| $|x|$ | `a\\|b` | \\| |\n|---|---|---|\n| $\\|x\\|$ | \\( |':
                '<div><table><thead><tr><th><span>$|x|$</></><th><code>a|b</></><th>|</></></>'
                '<tbody><tr><td><span>$\\|x\\|$</></><td><span>\\(</></><td></></></></></>',
            # An answer that is being written, or was cut off.
            'so \\( a *b* \\{c': '<p>so <span>\\( a *b* \\{c</></>',
            '\\[\n- *a*\n\n*b*': '<p><span>\\[\n- *a*</></><p><em>b</></>',
        }
        for text, expected in cases.items():
            self.assertEqual(self.shown(text), expected, text)

    def test_latex_without_delimiters_keeps_its_backslashes(self):
        texts = [r'\left\{ a \right\} 5\% x\,y\;z\!w \&', r'\|x\| a\#b x\>y a\-b 3\.1', r'a & b \\ c \\[2pt] \\', r'\text{a\_b} c_',
                 r'\#S \+1']
        for text in texts:
            self.assertEqual(self.shown(text), f'<p>{text}</>')

    def test_escaped_marks_do_nothing(self):
        text = '\n'.join([r'\# a', r'\> b', r'\- c', r'\+ d', r'1\. e', r'\* f', r'\---', r'\~~g~~', r'\`h\`', r'\_i\_ \_\_j\_\_',
                          r'\\*k*'])
        self.assertEqual(self.shown(text), '<p># a\n> b\n- c\n+ d\n1. e\n* f\n---\n~~g~~\n`h`\n_i_ __j__\n\\\\<em>k</></>')

    def test_task_lists_have_check_boxes(self):
        self.assertEqual(self.shown('- [ ] *a*\n- [x] b\n  - [X] c\n- [y] d\n- [ ]'),
                         '<ul><li><input></><p><em>a</></></><li><input></><p>b</><ul><li><input></><p>c</></></></>'
                         '<li><p>[y] d</></><li><p>[ ]</></></>')
        boxes = self.module('markdown.js', '''
            const box = document.createElement('div');
            m.showMarkdown(box, '1. [ ] to do\\n2. [x] *done*');
            return [...box.querySelectorAll('input')].map((node) => [node.type, node.checked, node.disabled, node.ariaLabel]);''')
        self.assertEqual(boxes, [['checkbox', False, True, 'to do'], ['checkbox', True, True, 'done']])

    # Returns the text of coloured code, and its coloured parts as "kind text".
    def coloured(self, code, language):
        return self.module('highlight.js', '''
            const box = document.createElement('code');
            box.append(...m.highlight(...given));
            return [box.textContent, [...box.children].map((node) => `${node.className} ${node.textContent}`)];''', code, language)

    def test_code_is_coloured(self):
        cases = {
            'python': ('@x\ndef f(a1=0xFF, b="#\\"") -> None:  # it\'s\n    r\'\'\'x\n"\'\'\' 1_0.5e-3 defer',
                       ['keyword def', 'number 0xFF', 'string "#\\""', 'keyword None', "comment # it's", "string r\'\'\'x\n\"\'\'\'",
                        'number 1_0.5e-3']),
            'c++': ('#include <x>\nint a = 1\'000u; /* "b\n*/ char c = \'\\\'\'; // end',
                    ['keyword #include', 'keyword int', "number 1'000u", 'comment /* "b\n*/', 'keyword char', "string '\\''", 'comment // end']),
            'js': ('const 名1 = `a\n${b}`;', ['keyword const', 'string `a\n${b}`']),
            'Bash': ('echo "a\nb" $# x#y \'c\\\' 12 # d\nif-not',
                     ['keyword echo', 'string "a\nb"', "string 'c\\'", 'number 12', 'comment # d']),
            'json': ('{"a": [true, -1.5, "\\"", nulls]}', ['string "a"', 'keyword true', 'number 1.5', 'string "\\""']),
            'brainfuck': ('if "a" 1', []),
            '': ('if "a" 1', []),
        }
        for language, (code, expected) in cases.items():
            self.assertEqual(self.coloured(code, language), [code, expected], language)

    def test_colours_change_no_text(self):
        codes = ['"\\', "'''", '/*', '`${', '"😀" 𝐀1', '#', '\\', '$', '0x', "1'", 'r"', '\r\n\t "\n', '']
        for language in ('python', 'c', 'js', 'sh', 'json'):
            for code in codes:
                self.assertEqual(self.coloured(code, language)[0], code)

    def test_copied_code_is_the_code(self):
        self.send('markdown')
        self.assertTrue(self.all('.code .keyword'))
        self.click('.copy-code')
        self.wait(lambda: self.text('.copy-code') == 'Copied')
        self.find('#message').send_keys(Keys.CONTROL, 'v')
        self.assertEqual(self.find('#message').get_attribute('value'), MARKDOWN.split('```')[1].removeprefix('python\n').rstrip('\n'))

    def test_addresses(self):
        safe = self.module('markdown.js', 'return given[0].map(m.safeAddress);', [
            'https://x.example/', 'HTTP://X.example', 'javascript:alert(1)', ' java\nscript:alert(1)', 'data:text/html,x', 'file:///x',
            'https://a@b.example/', '/path', 'x.example', 'blob:https://x.example/1', 'vbscript:x', ''])
        self.assertEqual(safe, ['https://x.example/', 'http://x.example/'] + [None] * 10)

    def test_hostile_text_takes_little_time(self):
        texts = ['*' * 50000, '[' * 50000, '[a](' * 12000, '> ' * 25000, '# ' + ' ' * 50000 + 'x', '`' * 3 + ' ' * 50000 + '`', '_a' * 25000,
                 '|' * 50000 + '\n' + '-|' * 25000, '- ' * 20000, '**a ' * 12000, '\n' * 50000, '|a\n|-' + ' ' * 50000 + 'x', 'http://' * 7000,
                 '`a' * 25000, ('- a\n' + '  ' * 50) * 500, '~' * 50000, '* ' * 20000 + 'x', '1. ' * 15000, '``a`' * 12000,
                 '$a ' * 9000, '\\(\n' * 15000, '\\[\n\n' * 12000, '\\' * 50000 + '$', '$' * 50000, '- [ ] ' * 8000, '- [ ]' + ' ' * 50000,
                 '- a\n' + '\n' * 25000 + '  b', '- a\n\n' * 16000, '|a' * 900 + '\n' + '|-' * 900 + '\n' + '|\n' * 25000, '~' * 100000 + '`',
                 ('https://[' * 70 + '.' * 1300 + 'x ') * 10, '\\begin{a}' * 5000, '|$' * 9000 + '\n|-' * 900, ('$a' + '\\' * 900 + '$') * 20,
                 *(f'```{name}\n{code * (50000 // len(code))}' for name in ('python', 'c', 'js', 'sh', 'json')
                   for code in ('"', "'", '"\\', '/*', '`', '#', '1', "1'", 'a', '"a\n', '\\', '$', ' ', 'r', '"' * 3, '𝐀'))]
        for text in texts:
            seconds = self.module('markdown.js', '''
                const start = performance.now();
                m.showMarkdown(document.createElement('div'), given[0]);
                return (performance.now() - start) / 1000;''', text)
            self.assertLess(seconds, 1, text[:20])

    def test_unchanged_blocks_keep_their_elements(self):
        self.assertTrue(self.module('markdown.js', '''
            const box = document.createElement('div');
            m.showMarkdown(box, 'one\\n\\ntw');
            const first = box.firstChild;
            m.showMarkdown(box, 'one\\n\\ntwo\\n\\n- three');
            return box.firstChild === first && box.childNodes.length === 3 && box.childNodes[1].textContent === 'two';'''))

    def test_code_that_grows_keeps_its_element(self):
        self.assertEqual(self.module('markdown.js', '''
            const box = document.createElement('div');
            m.showMarkdown(box, 'one\\n\\n```python\\nx = 1');
            const code = box.querySelector('pre');
            m.showMarkdown(box, 'one\\n\\n```python\\nx = 12\\n```\\ntwo');
            const same = box.querySelector('pre') === code;
            m.showMarkdown(box, 'one\\n\\n```python\\nx = 12\\n```\\ntwo three');
            return [same, box.querySelector('pre') === code, box.textContent];'''), [True, True, 'onepythonCopyx = 12two three'])

    def test_events_survive_any_split(self):
        text = 'data: {"a": 1}\n\n: comment\r\n\r\ndata:x\r\ndata: y\r\n\r\nevent: e\ndata: [DONE]\n\n'
        for size in (1, 2, 3, 7, 100):
            self.assertEqual(self.module('server.js', '''
                const reader = new m.EventReader(), all = [];
                for (let i = 0; i < given[0].length; i += given[1]) all.push(...reader.read(given[0].slice(i, i + given[1])));
                return all;''', text, size), ['{"a": 1}', 'x\ny', '[DONE]'])

    def test_a_large_event_takes_time_linear_in_its_size(self):
        self.assertEqual(self.module('server.js', '''
            const reader = new m.EventReader(), piece = 'x'.repeat(1000);
            reader.read('data: ');
            for (let i = 0; i < given[0]; ++i) reader.read(piece);
            return reader.read('\\n\\n')[0].length;''', 20_000), 20_000_000)


class CompletionTest(PageTest):
    def run_text(self, text='夜泊枫桥'):
        self.click('#completion-tab')
        self.find('#prompt').send_keys(text)
        self.click('#complete')
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) == 11)

    def test_tokens_show_their_probability(self):
        self.run_text()
        body = self.server.requests[-1]
        self.assertEqual((body['prompt'], body['logprobs'], body['max_tokens']), ('夜泊枫桥', 5, 128))
        texts = self.script('return [...document.querySelectorAll(".token")].map((node) => node.textContent)')
        self.assertEqual(texts, ['月', '落', '乌', '啼', '，\n', ' <b>', '霜', '满', '天', '。', '<|im_end|>'])
        ActionChains(self.browser).move_to_element(self.all('.token')[3]).perform()
        self.wait(lambda: 'Probability 34%' in self.text('#token-details'))
        self.assertEqual(len(self.all('#token-details li')), 5)
        self.assertIn('Perplexity of these 12 tokens', self.text('#complete-statistics'))
        colours = self.script('return [...document.querySelectorAll(".token")].map((node) => getComputedStyle(node).backgroundColor)')
        self.assertNotEqual(colours[1], colours[3])

    def test_an_alternative_continues_from_its_place(self):
        self.run_text()
        self.all('.token')[3].click()
        self.find('#token-details button').click()
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) == 15)
        self.assertEqual(self.server.requests[-1]['prompt'], '夜泊枫桥月落乌江')

    def test_continues_further(self):
        self.run_text()
        self.click('#complete-more')
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) == 21)
        self.assertEqual(self.server.requests[-1]['prompt'], '夜泊枫桥月落乌啼，\n <b>霜满天。')

    def test_stop_and_clear(self):
        self.server.delay = 0.2
        self.click('#completion-tab')
        self.find('#prompt').send_keys('x')
        self.click('#complete')
        self.wait(lambda: len(self.all('.token')) >= 2)
        self.click('#complete-stop')
        self.wait(lambda: self.find('#complete').is_displayed())
        self.assertIn('Stopped', self.text('#complete-statistics'))
        self.click('#complete-clear')
        self.assertEqual(self.all('.token'), [])

    def test_text_is_kept(self):
        self.run_text('kept')
        self.load()
        self.click('#completion-tab')
        self.assertEqual(self.find('#prompt').get_attribute('value'), 'kept')


class InsideTest(PageTest):
    def tearDown(self):
        self.browser.reset_view()
        super().tearDown()

    def look(self, text='moon'):
        self.click('#inside-tab')
        self.find('#inside-text').send_keys(text)
        self.click('#look')
        self.wait(lambda: self.content('#inside-details h2') or self.find('#inside-error').is_displayed())

    def open_layers(self):
        for summary in self.all('.layer summary'):
            summary.click()
        self.wait(lambda: len(self.all('.map')) == 4)

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def test_the_view_is_there_if_the_server_allows_it(self):
        self.assertTrue(self.find('#inside-tab').is_displayed())
        Select(self.find('#checkpoint-0')).select_by_value('grpo_768')
        self.assertFalse(self.find('#inside-tab').is_displayed())
        Select(self.find('#checkpoint-0')).select_by_value('full_sft_768')
        self.click('#inside-tab')
        self.assertTrue(self.find('#inside').is_displayed())
        Select(self.find('#checkpoint-0')).select_by_value('grpo_768')
        self.assertTrue(self.find('#chat').is_displayed())

    def test_shows_what_was_computed_at_a_token(self):
        self.look()
        self.assertEqual(self.server.requests[-1], {'model': 'full_sft_768', 'prompt': 'moon', 'candidates': 50})
        self.assertEqual([node.text for node in self.all('.piece')], ['月', '⟨e6 b1⟩', '␣<b>', '↵'])
        self.assertEqual(self.content('#inside-details h2'), 'At token 3 ↵')
        self.assertIn('probability 50.0%, logit 3.250', self.text('#inside-details .note'))
        self.assertIn('2 may be sampled', self.text('#inside-details caption'))
        self.assertEqual([row.text for row in self.all('#inside-details tbody tr')][:3],
                         ['␣<b> 3.250 50.0% 75.0%', '月 2.000 20.0% 25.0%', '#9 1.000 10.0% –'])
        shares = self.find('[aria-label^="Shares of the logit."]').get_attribute('aria-label')
        self.assertIn('Embedding: +2.750; 0 attention: +0.500; 0 feed-forward: −0.250', shares)
        self.all('.piece')[1].click()
        self.wait(lambda: self.content('#inside-details h2') == 'At token 1 ⟨e6 b1⟩')
        self.assertEqual(self.server.requests[-1]['positions'], [1])

    def test_sampling_and_chat_are_sent(self):
        self.click('#open-settings')
        self.find('#sampling-temperature').send_keys('0.5')
        self.find('#sampling-max_tokens').send_keys('9')
        self.click('#close-settings')
        self.click('#inside-tab')
        self.click('#inside-chat')
        self.look()
        body = self.server.requests[-1]
        self.assertEqual((body['messages'], body['temperature']), ([{'role': 'user', 'content': 'moon'}], 0.5))
        self.assertNotIn('max_tokens', body)

    def test_a_layer_has_its_equations_maps_experts_and_neurons(self):
        self.look()
        self.open_layers()
        text = self.text('#inside-details')
        for part in ('q_proj q = W_q n', 'up_proj u = W_up n', 'Router: probability of each expert', 'Strongest neurons', '1/7 -1.500 0.500'):
            self.assertIn(part, text)
        self.assertIn('looks most at 0 月 0.250', self.find('.map').get_attribute('aria-label'))

    def test_weights_are_read_by_keyboard_and_pointer(self):
        self.look()
        self.open_layers()
        self.script('document.querySelector(".map").focus()')
        self.press(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_RIGHT)
        self.assertEqual(self.text('.weight'), 'Head 0: 1 ⟨e6 b1⟩ looks at 1 ⟨e6 b1⟩ with weight 0.5000')
        ActionChains(self.browser).move_to_element_with_offset(self.find('.map'), 20, 20).perform()
        self.assertRegex(self.text('.weight'), r'Head 0: 2 ␣<b> looks at 2 ␣<b> with weight 0.3333')

    def test_parts_are_switched_off_and_on(self):
        self.look()
        self.open_layers()
        for label, part in (('Head 1', {'layer': 0, 'head': 1}), ('Expert 1', {'layer': 1, 'expert': 1}),
                            ('neuron 1/7', {'layer': 1, 'expert': 1, 'neuron': 7})):
            label = f'Switch off Layer {part["layer"]} · {label}'
            before = len(self.server.requests)
            self.find(f'[aria-label="{label}"]').click()
            self.wait(lambda: len(self.server.requests) > before)
            self.assertEqual(self.server.requests[-1]['without'][-1], part)
            self.wait(lambda: self.find(f'[aria-label="{label}"][aria-pressed="true"]'))
            self.assertEqual(self.focused(), label)
        self.assertEqual(self.text('#inside-off'), 'Off, by layer: 0: head 1, 1: expert 1, 1: expert 1 neuron 7')
        self.assertEqual(self.all('#inside-details tbody tr')[0].text, '␣<b> 3.250 50.0% 20.0% 75.0%')
        self.find('[aria-label="Switch off Layer 0 · Head 0"]').click()
        self.wait(lambda: self.find('#inside-error').is_displayed())
        self.assertIn('expected a list of at most 3 objects', self.text('#inside-error'))
        self.assertEqual(self.find('[aria-label="Switch off Layer 0 · Head 0"]').get_attribute('aria-pressed'), 'false')
        self.click('#inside-on')
        self.wait(lambda: not self.find('#inside-parts').is_displayed())
        self.assertEqual(self.all('#inside-details tbody tr')[0].text, '␣<b> 3.250 50.0% 75.0%')

    def test_a_figure_is_saved_as_svg(self):
        self.look()
        self.open_layers()
        self.find('[aria-label="Save “Layer 0 · Head 1” as SVG"]').click()
        path = pathlib.Path(self.downloads, 'Layer 0 · Head 1.svg')
        self.wait(path.exists)
        drawing = xml.etree.ElementTree.fromstring(path.read_text())
        self.assertEqual(drawing.tag, '{http://www.w3.org/2000/svg}svg')
        fills = {node.get('fill') for node in drawing.iter()}
        self.assertTrue(any(fill.startswith('rgb(') for fill in fills), fills)
        self.assertNotIn('class', drawing.attrib)

    def test_errors_are_words(self):
        self.look('long')
        self.assertEqual(self.text('#inside-error'), 'The server rejected the request: the text has 999 tokens, <b>expected</b> at most 256')

    def test_tokens_are_inert(self):
        self.look('hostile')
        self.open_layers()
        self.assertEqual(self.script('return window.hacked'), None)
        self.assertEqual(self.all('#inside img, #inside iframe, #inside script'), [])

    def test_tokens_are_chosen_by_keyboard(self):
        self.look()
        self.script('document.querySelector(".piece[tabindex=\'0\']").focus()')
        self.press(Keys.HOME, Keys.ENTER)
        self.wait(lambda: self.content('#inside-details h2') == 'At token 0 月')
        self.assertEqual(self.focused(), '0 月')

    def test_two_checkpoints_are_side_by_side(self):
        self.click('#compare')
        self.look()
        self.assertEqual(sorted(request['model'] for request in self.server.requests[-2:]), ['full_sft_768', 'grpo_768'])
        self.assertEqual([self.text(f'[aria-label="{name} · Inside"] h2') for name in ('full_sft_768', 'grpo_768')],
                         ['full_sft_768 · At token 3 ↵', 'grpo_768 · At token 3 ↵'])
        self.assertEqual(self.text('[aria-label="grpo_768 · Inside"] tbody tr'), '␣<b> 3.250 50.0% 45.0% 75.0%')
        self.find('[aria-label="full_sft_768 · Inside"] .layer summary').click()
        self.wait(lambda: len(self.all('.map')) == 4)
        self.assertEqual(self.text('.layer summary'), 'Layer 0: top token 月 40.0% ≠ ⟨e6 b1⟩')
        self.assertIn('Head 0 differs by 75.0%', self.text('[aria-label="grpo_768 · Inside"] .maps'))
        self.find('[aria-label="grpo_768 · Inside"] .layer summary').click()
        self.wait(lambda: len(self.all('.map')) == 0)
        self.find('[aria-label="grpo_768 · Inside"] .layer summary').click()
        self.wait(lambda: len(self.all('.map')) == 4)
        label = 'Switch off grpo_768 · Layer 0 · Head 1'
        self.find(f'[aria-label="{label}"]').click()
        self.wait(lambda: self.find(f'[aria-label="{label}"][aria-pressed="true"]'))
        self.assertEqual([request['without'] for request in self.server.requests[-2:]], [[{'layer': 0, 'head': 1}]] * 2)
        self.assertEqual(self.focused(), label)
        self.assertEqual(self.text('[aria-label="grpo_768 · Inside"] tbody tr'), '␣<b> 3.250 45.0% 40.0% 35.0% 75.0%')
        self.check_appearance()
        for width, columns in ((390, 1), (1280, 2)):
            self.set_width(width)
            self.assertEqual(len({round(look.rect['x']) for look in self.all('.look')}), columns)
        self.click('#compare')
        self.assertFalse(self.find('#inside-shown').is_displayed())

    def test_checkpoints_with_other_tokens_are_not_compared(self):
        self.click('#compare')
        self.look('split')
        self.assertEqual(self.text('#inside-error'),
                         'grpo_768 splits the text into other tokens than full_sft_768, so that they cannot be compared.')
        self.assertFalse(self.find('#inside-shown').is_displayed())

    def set_width(self, width):
        self.browser.set_view(width, 800)

    def check_appearance(self):
        for theme in ('light', 'dark'):
            self.script('document.documentElement.dataset.theme = arguments[0]', theme)
            self.assertEqual(self.faults(), [], theme)
        for width in (320, 390, 768, 1024, 1920):
            self.set_width(width)
            self.assertEqual(self.overflowing(), [], width)

    def test_no_fault_and_no_overflow(self):
        self.look()
        self.open_layers()
        self.find('[aria-label="Switch off Layer 0 · Head 1"]').click()
        self.wait(lambda: self.find('#inside-parts').is_displayed())
        self.check_appearance()
        self.browser.reset_view()
        self.click('#language')
        self.wait(lambda: self.content('#inside-details h2') == '词元 3 ↵ 处')
        self.assertEqual(self.faults(), [])


class ErrorTest(PageTest):
    def test_errors_are_words(self):
        for text, expected in (('reject', 'The server rejected the request: temperature is 9, <b>expected</b> 0 to 2'),
                               ('busy', 'The server is busy. Try again in 7 s.'),
                               ('break', 'The connection broke off. The text so far is kept.'),
                               ('fail', 'The server failed: out of memory')):
            self.send(text)
            self.wait(lambda: self.all('.lane .error p') and self.all('.lane .error p')[-1].text == expected)
        self.assertIn('half an answer', [node.text for node in self.all('.answer > .markdown')])
        self.assertEqual(self.all('.continue'), [], 'trying again continues')
        self.server.delay = 0.02
        self.send('long', wait=False)
        self.assertFalse(self.find('.lane .error button').is_displayed())

    def test_a_switch_that_is_on_is_seen_without_models(self):
        self.click('#think')
        self.server.key = 'secret'
        self.browser.get(self.server.address)
        self.wait(lambda: self.find('#key-box').is_displayed())
        self.click('#key-cancel')
        self.assertEqual(self.find('#think').get_attribute('aria-pressed'), 'true')
        self.click('#think')

    def test_failed_question_can_be_tried_again(self):
        self.send('busy')
        self.wait(lambda: self.find('.lane .error'))
        self.click('.lane .error button')
        self.wait(lambda: len(self.server.requests) == 2)
        self.assertEqual(self.server.requests[1]['messages'], [{'role': 'user', 'content': 'busy'}])

    def test_server_that_is_gone(self):
        self.server.gone = True
        self.send('hello')
        self.wait(lambda: self.find('.lane .error') and 'does not answer' in self.text('.lane .error'))

    def test_key_is_asked_for(self):
        self.server.key = 'secret'
        self.browser.get(self.server.address)
        self.wait(lambda: self.find('#key-box').is_displayed())
        self.find('#key').send_keys('wrong', Keys.ENTER)
        self.wait(lambda: self.text('#key-error') == 'The server does not accept this key.')
        self.find('#key').send_keys('secret', Keys.ENTER)
        self.wait(lambda: not self.find('#key-box').is_displayed() and self.find('#checkpoint-0 option:not([value=""])'))
        self.send('hello')
        self.assertEqual(self.answer(), 'full_sft_768: hello')
        self.assertNotIn('secret', self.script('return JSON.stringify(localStorage)'))

    def test_key_box_can_be_left(self):
        self.server.key = 'secret'
        self.browser.get(self.server.address)
        self.wait(lambda: self.find('#key-box').is_displayed())
        self.click('#key-cancel')
        self.wait(lambda: 'requires an API key' in self.text('#models-error'))
        self.assertFalse(self.find('#think').is_displayed())
        asked = self.server.paths.count('/v1/models')
        self.script("document.dispatchEvent(new Event('visibilitychange'))")
        self.wait(lambda: self.server.paths.count('/v1/models') > asked)
        time.sleep(0.3)  # until the page has the answer
        self.find('#message').send_keys('typed meanwhile')
        self.assertFalse(self.find('#key-box').is_displayed())
        self.click('#models-retry')
        self.find('#key').send_keys('secret', Keys.ENTER)
        self.wait(lambda: self.focused() == 'message' and not self.find('#models-error').is_displayed())


class LookTest(PageTest):
    def tearDown(self):
        self.browser.set_window_size(1280, 900)
        super().tearDown()

    def test_language_switch(self):
        self.assertEqual(self.text('#new-chat'), 'New chat')
        self.click('#language')
        self.assertEqual(self.text('#new-chat'), '新对话')
        self.assertEqual(self.script('return document.documentElement.lang'), 'zh-CN')
        self.load()
        self.assertEqual(self.text('#new-chat'), '新对话')

    def test_language_switch_while_an_answer_is_written(self):
        self.start_long_answer('word3')
        self.click('#language')
        self.wait(lambda: 'word30' in self.answer())
        self.assertEqual(self.all('.lane .actions'), [])
        self.click('#stop')
        self.wait(lambda: '已停止' in self.text('.statistics'))

    def test_every_text_is_in_both_languages(self):
        self.assertEqual(self.module('language.js', '''
            const names = [...document.querySelectorAll('[data-text], [data-label], [data-hint]')]
                .flatMap((node) => [node.dataset.text, node.dataset.label, node.dataset.hint]).filter((name) => name);
            return names.map((name) => m.t(name)).filter((text) => !text);'''), [])

    def test_themes(self):
        paper = lambda: self.script('return getComputedStyle(document.body).backgroundColor')
        self.browser.prefer_dark(True)
        self.wait(lambda: self.script('return matchMedia("(prefers-color-scheme: dark)").matches'))  # Firefox's process of the page learns it later
        dark = paper()
        self.click('#theme')
        self.assertEqual(self.find('#theme').get_attribute('title'), 'Colours: light')
        light = paper()
        self.assertNotEqual(dark, light)
        self.load()
        self.assertEqual(paper(), light)
        self.browser.prefer_dark(False)

    def test_nothing_overflows_on_any_width(self):
        self.send('markdown')
        self.send('hostile')
        self.click('#compare')
        self.send('weather?')
        for width in (320, 390, 768, 1024, 1920):
            self.browser.set_view(width, 800)
            for tab in ('#completion-tab', '#chat-tab'):
                self.click(tab)
                self.assertEqual(self.overflowing(), [], width)
        self.browser.reset_view()

    def test_the_header_has_room_beside_sidebar_and_settings(self):
        self.server.models = [model('full_sft_a_rather_long_name_768'), model('full_sft_768')]
        self.load()
        self.click('#compare')
        for width in (320, 390, 768, 961, 1024, 1100, 1280):
            self.browser.set_view(width, 800)
            if width > 960 and not self.find('#settings').is_displayed():
                self.click('#open-settings')
            boxes = self.script('''
                return [...document.querySelectorAll('#main > header :is(button, select):not([hidden])')].filter((node) => node.offsetWidth)
                    .map((node) => [node.id, ...Object.values(node.getBoundingClientRect().toJSON()).slice(0, 4)]);''')
            for i, (name, x, y, w, h) in enumerate(boxes):
                if name.startswith('checkpoint'):
                    self.assertGreater(w, 100, (width, name))
                for other, x2, y2, w2, h2 in boxes[:i]:
                    self.assertFalse(x < x2 + w2 - 1 and x2 < x + w - 1 and y < y2 + h2 - 1 and y2 < y + h - 1, (width, name, other))
        self.browser.reset_view()

    def test_the_page_stays_in_its_window(self):
        for _ in range(3):
            self.send('markdown')
        self.script('[...document.querySelectorAll(".question h2")].at(-1).scrollIntoView()')
        self.assertEqual(self.script('return [document.scrollingElement.scrollTop, document.scrollingElement.scrollHeight - innerHeight]'),
                         [0, 0])

    def test_what_is_read_keeps_room_in_a_low_window(self):
        self.send('markdown')
        self.browser.set_view(320, 256)
        self.assertGreaterEqual(self.script('return document.getElementById("chat-scroll").clientHeight'), 100)
        bottom = self.script('''
            document.getElementById('chat').scrollTop = 1000;
            return document.getElementById('message').getBoundingClientRect().bottom;''')
        self.assertLess(bottom, 256)
        self.browser.reset_view()

    def test_a_print_has_the_whole_conversation_and_nothing_else(self):
        for _ in range(3):
            self.send('markdown')
        self.browser.show_as_print(True)
        self.addCleanup(self.browser.show_as_print, False)
        self.wait(lambda: self.script('return matchMedia("print").matches'))
        ends = self.script('return [document.getElementById("turns").getBoundingClientRect().bottom, document.documentElement.scrollHeight]')
        self.assertGreater(ends[1], 1000)
        self.assertLessEqual(ends[0], ends[1])
        for selector in ('#sidebar', 'header', '.composer', '.actions button', '.copy-code', '.statistics'):
            self.assertFalse(self.find(selector).is_displayed(), selector)

    def test_drawers_on_a_phone(self):
        self.browser.set_view(390, 800)
        self.wait(lambda: not self.find('#sidebar').is_displayed())
        self.click('#open-sidebar')
        self.assertEqual(self.focused(), 'close-sidebar')
        self.assertTrue(self.script('return document.getElementById("main").inert'))
        self.find('#close-sidebar').send_keys(Keys.ESCAPE)
        self.assertFalse(self.find('#sidebar').is_displayed())
        self.assertEqual(self.focused(), 'open-sidebar')
        self.browser.reset_view()

    def test_contrast(self):
        ratios = {}
        for theme in ('light', 'dark'):
            self.script('document.documentElement.dataset.theme = arguments[0]', theme)
            ratios[theme] = self.script('''
                const style = getComputedStyle(document.documentElement);
                const colour = (name) => {
                  const probe = document.body.appendChild(document.createElement('i'));
                  probe.style.color = `var(--${name})`;
                  const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
                  probe.remove();
                  const linear = parts.map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
                };
                const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                const pairs = [['ink', 'paper'], ['ink', 'bubble'], ['ink-soft', 'paper'], ['ink-soft', 'sunken'], ['ink-soft', 'hover'],
                               ['pine', 'paper'], ['pine', 'pine-soft'], ['on-pine', 'pine'], ['red', 'red-soft'],
                               ...['comment', 'string', 'number', 'keyword'].map((kind) => [`code-${kind}`, 'sunken'])];
                return Object.fromEntries(pairs.map(([a, b]) => [`${a} on ${b}`, ratio(colour(a), colour(b))]));''')
        for theme, pairs in ratios.items():
            for pair, ratio in pairs.items():
                self.assertGreaterEqual(ratio, 4.5, f'{pair}, {theme}')


class ChineseTest(PageTest):
    language = 'zh-CN'

    def test_language_of_the_browser(self):
        self.assertEqual(self.text('#new-chat'), '新对话')
        self.assertEqual(self.find('#message').get_attribute('placeholder'), '输入消息')
        self.send('busy')
        self.wait(lambda: self.find('.lane .error') and self.text('.lane .error p') == '服务器繁忙，请在 7 秒后重试。')


if __name__ == '__main__':
    unittest.main()
