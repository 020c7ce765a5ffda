"""Tests the chat page of `minimind serve` with the bundled model: the page and the program understand each other."""

import json
import os
import pathlib
import subprocess
import unittest
import urllib.error
import urllib.request

from selenium.webdriver.common.keys import Keys

from test_page import POEM_QUESTION, PageTest

ROOT = pathlib.Path(__file__).resolve().parents[4]
PROGRAM = os.environ.get('MINIMIND_PROGRAM', ROOT / 'minimind')


class Program:
    """`minimind serve` on a free port. The bundled model is tiny, so answers take a second."""

    def __init__(self, *options):
        # With -q, the address is all that it prints.
        self.process = subprocess.Popen([PROGRAM, 'serve', '-q', '--port', '0', '--seed', '1', *options],
                                        stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().rstrip() + '/'

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=60)


class ServedPageTest(PageTest):
    def start_server(self):
        server = Program()
        self.addCleanup(server.stop)
        return server

    def test_poem_is_streamed_and_found_again(self):
        self.send(POEM_QUESTION)
        poem = self.answer()
        self.assertRegex(poem, r'^[\u4e00-\u9fff，。！？、\n ]{20,}$')
        # A poem that comes in one piece has no speed.
        self.assertRegex(self.text('.statistics'), r'^(\d+ tokens/s\s+)?first token .*\s+\d+ of \d+ tokens of context')
        self.load()
        self.assertEqual(self.answer(), poem)
        self.send('再写一首')
        self.assertEqual(len(self.all('.turn')), 2)
        self.assertEqual(self.all('.lane .error'), [])

    def test_poet_has_starters_and_no_switch_of_thinking(self):
        self.assertFalse(self.find('#think').is_displayed())
        for starter in range(3):
            self.click('#new-chat')
            self.all('#starters button')[starter].click()
            self.wait(lambda: self.all('.answer') and self.idle())
            self.assertRegex(self.answer(), r'^[\u4e00-\u9fff，。！？、\n ]{20,}$')

    def test_chat_loads_what_the_page_exports(self):
        self.send(POEM_QUESTION)
        self.click('[aria-label="Regenerate"]')
        self.wait(lambda: self.find('.versions') and self.idle())
        exported = self.module('conversations.js', 'return m.exportConversation(m.allConversations()[0]);')
        self.assertIn('versions', exported)
        path = pathlib.Path(self.downloads, 'exported.json')
        path.write_text(json.dumps(exported))
        done = subprocess.run([PROGRAM, 'chat', '-q', '--seed', '1', '--load', path, '-p', '再写一首'], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_answer_at_the_limit_is_continued(self):
        self.click('#open-settings')
        self.find('#sampling-max_tokens').send_keys('6')
        self.send(POEM_QUESTION)
        start = self.answer()
        self.click('.continue')
        self.wait(lambda: self.idle() and len(self.answer()) > len(start))
        self.assertTrue(self.answer().startswith(start))
        self.assertEqual(self.all('.lane .error'), [])

    def test_rejected_field_is_an_error_in_words(self):
        message = self.module('server.js', """
            try {
              for await (const chunk of m.streamChunks('/v1/completions', {prompt: 'x', temperature: 'warm'})) return 'accepted';
            } catch (error) { return error.message; }""")
        self.assertRegex(message, 'The server rejected the request: temperature is')

    def test_continuation_shows_probabilities(self):
        self.click('#completion-tab')
        self.find('#prompt').send_keys('夜泊枫桥')
        self.click('#complete')
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) > 3)
        self.all('.token')[2].click()
        self.assertRegex(self.text('#token-details'), r'Probability (< )?[0-9.]+%')
        self.assertGreaterEqual(len(self.all('#token-details li')), 5)
        self.find('#token-details button').click()
        self.wait(lambda: self.find('#complete').is_displayed() and len(self.all('.token')) > 2)
        self.assertFalse(self.find('#complete-error').is_displayed())

    def test_looks_inside(self):
        self.click('#inside-tab')
        self.find('#inside-text').send_keys('夜泊枫桥')
        self.click('#look')
        self.wait(lambda: self.content('#inside-details h2'))
        self.assertEqual(self.all('.bars')[0].get_attribute('role'), 'img')
        for summary in self.all('.layer summary'):
            summary.click()
        self.wait(lambda: self.all('.map'))
        self.all('.piece')[0].click()
        self.wait(lambda: self.content('#inside-details h2').startswith('At token 0'))
        before = self.content('#inside-details tbody')
        self.find('[aria-label="Switch off Layer 0 · Head 0"]').click()
        self.wait(lambda: self.find('#inside-parts').is_displayed() and self.content('#inside-details tbody') != before)
        self.assertFalse(self.find('#inside-error').is_displayed())

    def test_files_have_the_policy_and_are_not_sent_twice(self):
        answer = urllib.request.urlopen(self.server.address)
        policy = (ROOT / 'tools/serve/page/content_security_policy.txt').read_text().strip()
        self.assertEqual(answer.headers['Content-Security-Policy'], policy)
        self.assertEqual(answer.headers.get_all('X-Content-Type-Options'), ['nosniff'])
        again = urllib.request.Request(self.server.address, headers={'If-None-Match': answer.headers['ETag']})
        with self.assertRaises(urllib.error.HTTPError) as failure:
            urllib.request.urlopen(again)
        self.assertEqual(failure.exception.code, 304)


# A server that other machines reach, as its options say.
class RemoteTest(PageTest):
    options = ['--allow-host', 'minimind.example']
    has_inside = False

    def start_server(self):
        server = Program(*self.options)
        self.addCleanup(server.stop)
        return server

    def test_looks_inside_only_if_allowed(self):
        self.assertEqual(self.find('#inside-tab').is_displayed(), self.has_inside)


class RemoteInsideTest(RemoteTest):
    options = [*RemoteTest.options, '--inside']
    has_inside = True


class KeyTest(PageTest):
    def start_server(self):
        keys = pathlib.Path(self.downloads, 'keys.txt')
        keys.write_text('secret\n')
        server = Program('--api-key-file', str(keys))
        self.addCleanup(server.stop)
        return server

    # The box appears first.
    def load(self):
        self.browser.get(self.server.address)

    def test_key_is_asked_for(self):
        self.wait(lambda: self.find('#key-box').is_displayed())
        self.find('#key').send_keys('secret', Keys.ENTER)
        self.wait(lambda: not self.find('#key-box').is_displayed() and self.find('#checkpoint-0 option:not([value=""])'))
        self.send(POEM_QUESTION)
        self.assertNotEqual(self.answer(), '')


if __name__ == '__main__':
    unittest.main()
