"""The browsers in which the pages are tried, which BROWSER names: chromium or firefox, behind Selenium's interface.

Chromium has Debian's driver. Firefox's driver is not in Debian; Firefox itself hears Marionette, the protocol that such a
driver would speak: commands of WebDriver as JSON in TCP.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from selenium import webdriver
from selenium.webdriver.remote.file_detector import UselessFileDetector

NAME = os.environ.get('BROWSER', 'chromium')
PROGRAMS = {'chromium': ('chromium', 'chromedriver'), 'firefox': ('firefox-esr',)}[NAME]
MISSING = [program for program in PROGRAMS if not shutil.which(program)]
if MISSING:
    print(f'{NAME}: {", ".join(MISSING)} is not installed: nothing is tested in this browser', file=sys.stderr)


def start_browser(language='en-US', downloads=''):
    if MISSING:
        raise unittest.SkipTest(f'no {NAME}')
    return {'chromium': Chromium, 'firefox': Firefox}[NAME](language, downloads)


class Chromium(webdriver.Chrome):
    def __init__(self, language, downloads):
        options = webdriver.ChromeOptions()
        # A container has neither the namespaces of Chromium's sandbox nor a large /dev/shm.
        for argument in ('--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--window-size=1280,900', f'--lang={language}'):
            options.add_argument(argument)
        options.binary_location = shutil.which('chromium')
        options.add_experimental_option('prefs', {'intl.accept_languages': language, 'download.default_directory': downloads})
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
        super().__init__(options=options, service=webdriver.ChromeService(shutil.which('chromedriver')))

    def take_requests(self):
        """Returns the addresses of all requests since the last call, also of those that a policy blocked."""
        messages = [json.loads(entry['message'])['message'] for entry in self.get_log('performance')]
        return [message['params']['request']['url'] for message in messages if message['method'] == 'Network.requestWillBeSent']

    def take_errors(self):
        """Returns what the console calls an error since the last call."""
        return [entry['message'] for entry in self.get_log('browser') if entry['level'] == 'SEVERE']

    def set_view(self, width, height):
        self.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {'width': width, 'height': height, 'deviceScaleFactor': 1, 'mobile': False})

    def reset_view(self):
        self.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})

    def prefer_dark(self, is_dark):
        self.execute_cdp_cmd('Emulation.setEmulatedMedia',
                             {'features': [{'name': 'prefers-color-scheme', 'value': 'dark'}] if is_dark else []})

    def show_as_print(self, is_print):
        self.execute_cdp_cmd('Emulation.setEmulatedMedia', {'media': 'print' if is_print else ''})

    def run_beside_policy(self, script):
        """Runs a script that does what the page's policy forbids, such as eval."""
        self.execute_cdp_cmd('Page.setBypassCSP', {'enabled': True})
        self.execute_script(script)
        self.execute_cdp_cmd('Page.setBypassCSP', {'enabled': False})


class Firefox(webdriver.Remote):
    def __init__(self, language, downloads):
        self.profile = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.profile.name)
        preferences = {'marionette.port': 0, 'intl.accept_languages': language, 'browser.download.dir': str(downloads),
                       'browser.download.folderList': 2, 'layout.css.prefers-color-scheme.content-override': 1}
        (folder / 'user.js').write_text(''.join(f'user_pref({json.dumps(name)}, {json.dumps(value)});\n' for name, value in preferences.items()))
        self.process = subprocess.Popen(['firefox-esr', '--headless', '--marionette', '--remote-allow-system-access', '--no-remote', '--profile', folder],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        super().__init__(command_executor=Marionette(folder / 'MarionetteActivePort'), options=webdriver.FirefoxOptions(),
                         file_detector=UselessFileDetector())
        self.set_window_size(1280, 985)  # of which the page has 900
        self.inside_firefox(RECORD)

    def quit(self):
        super().quit()
        self.process.wait(timeout=60)
        self.profile.cleanup()

    def inside_firefox(self, script, *arguments):
        """Runs a script with the rights of Firefox itself."""
        executor = self.command_executor
        executor.send('Marionette:SetContext', {'value': 'chrome'})
        try:
            result = executor.send('WebDriver:ExecuteScript', {'script': script, 'args': arguments, 'sandbox': 'system', 'newSandbox': False})
            if 'error' in result:
                raise RuntimeError(result['error'])
            return result['value']
        finally:
            executor.send('Marionette:SetContext', {'value': 'content'})

    def take_requests(self):
        return self.inside_firefox('return window.minimindRequests.splice(0);')

    def take_errors(self):
        return self.inside_firefox('return window.minimindErrors.splice(0);')

    # A window of Firefox is not as narrow as a phone, but the page within it is.
    def set_view(self, width, height):
        self.inside_firefox('gBrowser.selectedBrowser.style = `width: ${arguments[0]}px; height: ${arguments[1]}px; flex: none; '
                            'min-width: 0; min-height: 0; max-width: none`;', width, height)
        deadline = time.monotonic() + 5
        while self.execute_script('return innerWidth') != width and time.monotonic() < deadline:
            time.sleep(0.02)

    def reset_view(self):
        self.inside_firefox('gBrowser.selectedBrowser.removeAttribute("style");')

    def prefer_dark(self, is_dark):
        self.inside_firefox('Services.prefs.setIntPref("layout.css.prefers-color-scheme.content-override", arguments[0]);', 0 if is_dark else 1)

    def show_as_print(self, is_print):
        self.inside_firefox('gBrowser.selectedBrowser.browsingContext.mediumOverride = arguments[0];', 'print' if is_print else '')

    def run_beside_policy(self, script):
        self.execute_script(script)


# Requests of pages, not those of Firefox itself, and errors of pages.
RECORD = r'''
    window.minimindRequests = [];
    window.minimindErrors = [];
    Services.obs.addObserver({observe(channel) {
      channel.QueryInterface(Ci.nsIChannel);
      if (!channel.loadInfo.triggeringPrincipal.isSystemPrincipal || channel.loadInfo.externalContentPolicyType === 6)
        window.minimindRequests.push(channel.URI.spec);
    }}, 'http-on-opening-request');
    Services.console.registerListener({observe(message) {
      if (message instanceof Ci.nsIScriptError && !(message.flags & 9) && !/^(chrome|resource|jar|moz-extension):/.test(message.sourceName))
        window.minimindErrors.push(message.errorMessage);
    }});'''

# Selenium's names of commands, and Marionette's.
COMMANDS = {
    'newSession': 'NewSession', 'deleteSession': 'DeleteSession', 'get': 'Navigate', 'refresh': 'Refresh', 'getCurrentUrl': 'GetCurrentURL',
    'findElement': 'FindElement', 'findElements': 'FindElements', 'findChildElement': 'FindElement', 'findChildElements': 'FindElements',
    'clickElement': 'ElementClick', 'sendKeysToElement': 'ElementSendKeys', 'clearElement': 'ElementClear', 'getElementText': 'GetElementText',
    'getElementTagName': 'GetElementTagName', 'getElementRect': 'GetElementRect', 'getElementAttribute': 'GetElementAttribute',
    'getElementProperty': 'GetElementProperty', 'isElementEnabled': 'IsElementEnabled', 'isElementSelected': 'IsElementSelected',
    'getElementValueOfCssProperty': 'GetElementCSSValue',
    'w3cGetActiveElement': 'GetActiveElement', 'w3cExecuteScript': 'ExecuteScript', 'w3cExecuteScriptAsync': 'ExecuteAsyncScript',
    'actions': 'PerformActions', 'clearActionState': 'ReleaseActions', 'getWindowRect': 'GetWindowRect', 'setWindowRect': 'SetWindowRect',
    'w3cGetWindowHandles': 'GetWindowHandles', 'screenshot': 'TakeScreenshot', 'setTimeouts': 'SetTimeouts',
    'w3cGetAlertText': 'GetAlertText', 'w3cDismissAlert': 'DismissAlert', 'w3cAcceptAlert': 'AcceptAlert',
}


class Marionette:
    """Sends Selenium's commands to Firefox: length:[0, id, name, parameters], and back length:[1, id, error, result]."""

    def __init__(self, port_file):
        deadline = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text()):
            if time.monotonic() > deadline:
                raise RuntimeError('Firefox does not listen within 60 s')
            time.sleep(0.05)
        self.connection = socket.create_connection(('127.0.0.1', int(port_file.read_text())))
        self.stream = self.connection.makefile('rb')
        self.count = 0
        self.receive()  # its greeting

    def receive(self):
        length = b''
        while (byte := self.stream.read(1)) != b':':
            if not byte:
                raise RuntimeError('Firefox has closed the connection')
            length += byte
        return json.loads(self.stream.read(int(length)))

    def send(self, name, parameters):
        self.count += 1
        message = json.dumps([0, self.count, name, parameters]).encode()
        self.connection.sendall(b'%d:%s' % (len(message), message))
        _, _, error, result = self.receive()
        return {'error': error} if error else result

    def execute(self, command, parameters):
        """As RemoteConnection does: returns {value}, or {status, value} of an error."""
        parameters = {name: value for name, value in (parameters or {}).items() if name != 'sessionId'}
        if command == 'quit':
            self.send('Marionette:Quit', {'flags': ['eForceQuit']})
            return {}
        if command.startswith('findChild'):
            parameters['element'] = parameters.pop('id')
        if 'script' in parameters:
            parameters |= {'sandbox': None, 'newSandbox': False}  # the page's own globals
        result = self.send(f'WebDriver:{COMMANDS[command]}', parameters)
        if isinstance(result, dict) and 'error' in result:
            return {'status': 500, 'value': json.dumps({'value': result['error']})}
        return {'value': result['value'] if isinstance(result, dict) and 'value' in result else result}

    def close(self):
        self.connection.close()
