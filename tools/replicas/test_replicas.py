"""Tests of nginx.conf and kubernetes.yaml with two replicas on this machine. Run: make test-replicas"""

from __future__ import annotations

import http.client
import http.server
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEMO = str(ROOT / "weights" / "demo" / "model.pth")
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")

OF_ONE_SERVER = ("/update_weights_from_disk", "/flush_cache", "/reset_prefix_cache")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def request(port, method, path, body=None, headers=None, tls=None):
    connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=tls) if tls
                  else http.client.HTTPConnection("127.0.0.1", port, timeout=60))
    data = json.dumps(body) if body is not None else None
    connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
    return connection.getresponse()


def wait_until(happened, seconds=60):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"{happened.__name__} not after {seconds} s"
        time.sleep(0.05)


def wait_until_healthy(port):
    def is_healthy():
        try:
            return request(port, "GET", "/health").status == 200
        except OSError:
            return False

    wait_until(is_healthy, 30)


class Replicas(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start_replica(self, port, *options):
        command = [PROGRAM, "serve", "-q", "-m", DEMO, "--port", str(port), "--threads", "1", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        wait_until_healthy(port)
        return process

    def start_nginx(self, name, changes):
        """Starts nginx with a file of this folder, whose ports and keys are replaced."""
        config = (HERE / name).read_text()
        for written, other in changes.items():
            config = re.sub(rf"\b{written}\b", str(other), config)
        file = pathlib.Path(self.folder.name, "nginx.conf")
        file.write_text("pid nginx.pid;\nerror_log error.log;\ndaemon off;\n" + config)
        nginx = subprocess.Popen([NGINX, "-p", self.folder.name, "-c", str(file)], stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (nginx.terminate(), nginx.wait()))

    def texts_of(self, port):
        """How many texts a replica has written."""
        return int(re.search(r"^minimind_texts_total (\d+)$", request(port, "GET", "/metrics").read().decode(), re.M)[1])


@unittest.skipIf(NGINX is None, "nginx is not installed: apt install nginx-light")
class Nginx(Replicas):
    def setUp(self):
        super().setUp()
        self.port, *self.replicas = free_port(), free_port(), free_port()
        self.processes = [self.start_replica(port) for port in self.replicas]
        self.start_nginx("nginx.conf", {8100: self.port, 8101: self.replicas[0], 8102: self.replicas[1]})
        wait_until_healthy(self.port)

    def stream(self, tokens):
        body = {"prompt": "春天", "max_tokens": tokens, "stream": True, "ignore_eos": True, "temperature": 0}
        return request(self.port, "POST", "/v1/completions", body)

    def test_streams_are_not_buffered(self):
        answer, arrivals = self.stream(400), []
        while line := answer.readline():
            if line.startswith(b"data: {"):
                arrivals.append(time.monotonic())
        first, last = arrivals[0], arrivals[-1]
        self.assertGreater(last - first, 0.01)
        self.assertGreater(sum(first < arrival < last - 0.2 * (last - first) for arrival in arrivals), len(arrivals) / 4)

    def test_a_replica_that_ends_and_returns_fails_no_request(self):
        outcomes, stop = [], threading.Event()
        self.addCleanup(stop.set)

        def ask():
            while not stop.is_set():
                answer = self.stream(60)
                outcomes.append((answer.status, answer.read().rstrip().endswith(b"data: [DONE]")))

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        wait_until(lambda: self.texts_of(self.replicas[0]) > 0 and len(outcomes) > 4)
        self.processes[0].send_signal(signal.SIGTERM)
        self.assertEqual(self.processes[0].wait(30), 0)
        before = len(outcomes)
        wait_until(lambda: len(outcomes) > before + 4)
        self.start_replica(self.replicas[0])
        wait_until(lambda: self.texts_of(self.replicas[0]) > 0)  # past fail_timeout
        stop.set()
        for client in clients:
            client.join()
        self.assertEqual(set(outcomes), {(200, True)})

    def test_weights_cannot_be_replaced_through_it(self):
        self.assertEqual(request(self.port, "POST", "/update_weights_from_disk", {"model_path": DEMO}).status, 403)
        for path in OF_ONE_SERVER:
            self.assertEqual(request(self.port, "POST", path, {}).status, 403, path)
            self.assertEqual(request(self.port, "POST", path + "/", {}).status, 403, path)

    def test_errors_of_the_replicas_pass_through(self):
        answer = request(self.port, "POST", "/v1/completions", {"prompt": "a", "top_p": 3})
        self.assertEqual(answer.status, 400)
        self.assertIn("top_p", json.loads(answer.read())["error"]["message"])


@unittest.skipIf(NGINX is None, "nginx is not installed: apt install nginx-light")
class People(Replicas):
    """people.conf: TLS, and a key for each person. The key of Bo is as long as `openssl rand -hex 24` makes them."""

    ANNAS, BOS = "change-this-key-of-anna", secrets.token_hex(24)

    def setUp(self):
        super().setUp()
        server = free_port()
        folder = pathlib.Path(self.folder.name)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "privkey.pem", "-out", folder / "fullchain.pem"],
                       check=True, capture_output=True)
        self.start_replica(server)
        self.tls = ssl.create_default_context(cafile=folder / "fullchain.pem")
        self.start_in_front_of(server)

    def start_in_front_of(self, server):
        self.port = free_port()
        self.start_nginx("people.conf", {8443: self.port, 8998: server, "change-this-key-of-bo": self.BOS})
        wait_until(self.is_healthy, 30)

    def ask(self, method, path, body=None, key=None, azure_key=None):
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return request(self.port, method, path, body, headers | ({"api-key": azure_key} if azure_key else {}), self.tls)

    def is_healthy(self):
        try:
            return self.ask("GET", "/health").status == 200
        except OSError:
            return False

    def test_only_those_with_a_key_are_answered(self):
        body = {"prompt": "春天", "max_tokens": 4}
        for key in (None, "change-this-key-of-nobody", "change-this-key-of-ann"):
            self.assertEqual(self.ask("POST", "/v1/completions", body, key).status, 401)
        self.assertEqual(self.ask("POST", "/", {"inputs": "春天"}).status, 401)
        self.assertEqual(self.ask("POST", "/", {"inputs": "春天"}, self.ANNAS).status, 200)
        self.assertEqual(self.ask("GET", "/v1/models").status, 401)
        self.assertEqual(self.ask("POST", "/v1/completions", body, self.ANNAS).status, 200)
        for path in (*OF_ONE_SERVER, "/metrics"):
            self.assertEqual(self.ask("POST", path, {}, self.ANNAS).status, 403)
            self.assertEqual(self.ask("POST", path + "/", {}, self.ANNAS).status, 403)

    def test_azures_clients_send_a_key_in_a_field_of_their_own(self):
        body = {"prompt": "春天", "max_tokens": 1}
        for path in ("/openai/deployments/m/completions?api-version=1", "/v1/completions"):
            self.assertEqual(self.ask("POST", path, body, azure_key=self.BOS).status, 200)
        self.assertEqual(self.ask("POST", "/", {"inputs": "春天"}, azure_key=self.BOS).status, 200)
        self.assertEqual(self.ask("POST", "/v1/completions", body, self.BOS, self.BOS).status, 200)
        for key in ("change-this-key-of-nobody", f"Bearer {self.BOS}", f"{self.BOS} {self.BOS}", f"{self.BOS} Bearer {self.BOS}"):
            self.assertEqual(self.ask("POST", "/v1/completions", body, azure_key=key).status, 401, key)

    def test_two_keys_are_none(self):
        body = {"prompt": "春天", "max_tokens": 1}
        for key, other in ((self.ANNAS, self.BOS), (self.ANNAS, "nobody"), ("nobody", self.ANNAS), (self.ANNAS, self.ANNAS + "a")):
            self.assertEqual(self.ask("POST", "/v1/completions", body, key, other).status, 401, (key, other))
        log = pathlib.Path(self.folder.name, "people.log")
        wait_until(lambda: log.read_text().count('"" "POST /v1/completions" 401') == 4)
        self.assertNotRegex(log.read_text(), '"(anna|bo)"')

    def test_a_key_is_not_passed_on(self):
        received = []

        class Upstream(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                received.append(str(self.headers))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        upstream = http.server.HTTPServer(("127.0.0.1", 0), Upstream)
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        threading.Thread(target=upstream.serve_forever, daemon=True).start()
        self.start_in_front_of(upstream.server_port)
        for keys in ((self.BOS, None), (None, self.BOS), (self.BOS, self.BOS)):
            self.assertEqual(self.ask("GET", "/v1/models", None, *keys).status, 200)
        self.assertGreater(len(received), 3)
        self.assertNotIn(self.BOS, "".join(received))

    def test_the_page_comes_without_a_key(self):
        page = self.ask("GET", "/").read().decode()
        files = re.findall(r'(?:src|href)="/?([a-z_]+[.](?:js|css|svg))"', page)
        self.assertGreater(len(files), 2)
        for file in files:
            self.assertEqual(self.ask("GET", f"/{file}").status, 200, file)

    def test_the_log_has_who_asked_and_no_key(self):
        self.ask("POST", "/v1/completions", {"prompt": "春天", "max_tokens": 1}, self.BOS).read()
        log = pathlib.Path(self.folder.name, "people.log")
        wait_until(lambda: '"bo" "POST /v1/completions" 200' in log.read_text())
        self.assertNotIn(self.BOS, log.read_text())

    def test_a_person_has_a_few_answers_at_once_and_keeps_nobody_out(self):
        body = {"prompt": "春天", "max_tokens": 3000, "stream": True, "ignore_eos": True}
        answers = [self.ask("POST", "/v1/completions", body, *keys) for keys in ((self.ANNAS,), (None, self.ANNAS)) * 3]
        self.assertEqual(sorted(answer.status for answer in answers), [200] * 4 + [429] * 2)
        self.assertEqual(self.ask("POST", "/", {"inputs": "春"}, self.ANNAS).status, 429)
        self.assertEqual(self.ask("POST", "/v1/completions", {"prompt": "春", "max_tokens": 4}, self.BOS).status, 200)


class Kubernetes(Replicas):
    def setUp(self):
        super().setUp()
        self.manifests = list(yaml.safe_load_all((HERE / "kubernetes.yaml").read_text()))
        self.pod = next(each for each in self.manifests if each["kind"] == "Deployment")["spec"]["template"]["spec"]
        (self.container,) = self.pod["containers"]

    def test_the_manifest_is_valid(self):
        for manifest in self.manifests:
            kubernetes_validate.validate(manifest, "1.32", strict=True)

    def test_the_time_to_end_is_enough(self):
        drain = int(next(arg for arg in self.container["args"] if arg.startswith("--drain=")).split("=")[1])
        pause = self.container["lifecycle"]["preStop"]["sleep"]["seconds"]
        self.assertGreater(self.pod["terminationGracePeriodSeconds"], drain + pause)

    def test_the_container_runs_is_probed_and_drains(self):
        port, keys = free_port(), pathlib.Path(self.folder.name, "keys")
        keys.write_text(next(each for each in self.manifests if each["kind"] == "Secret")["stringData"]["keys"])
        changed = {"--model": DEMO, "--port": str(port), "--api-key-file": str(keys), "--threads": "1"}
        arguments = [argument.split("=", 1) for argument in self.container["args"]]
        command = [PROGRAM, *self.container["command"][1:]]
        command += [f"{name}={changed.get(name, value)}" for name, value in arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (process.kill(), process.wait()))
        wait_until_healthy(port)
        probe = self.container["readinessProbe"]["httpGet"]["path"]
        self.assertEqual(request(port, "GET", probe, headers={"Host": f"10.1.2.3:{port}"}).status, 200)
        body = {"prompt": "春天", "max_tokens": 300, "stream": True, "ignore_eos": True}
        self.assertEqual(request(port, "POST", "/v1/completions", body).status, 401)
        answer = request(port, "POST", "/v1/completions", body, {"Authorization": "Bearer change-this-key"})
        answer.readline()
        process.send_signal(signal.SIGTERM)
        self.assertTrue(answer.read().rstrip().endswith(b"data: [DONE]"))
        self.assertEqual(process.wait(30), 0)


if __name__ == "__main__":
    unittest.main()
