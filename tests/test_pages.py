"""Tests that every link of the pages leads to a file of the repository, and to a heading of it, and that tables and versions are up to date."""

import email.utils
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md"] + [page for folder in (".github", "runtime", "tests", "tools", "weights")
                                 for page in sorted((ROOT / folder).rglob("*.md"))]


def anchors(page):
    """The anchors of a page's headings, as GitHub spells them."""
    lines = page.read_text(encoding="utf-8").splitlines()
    headings = [re.sub(r"^#+ ", "", line) for line in lines if re.match(r"#+ ", line)]
    found = []
    for anchor in (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings):
        count = sum(re.fullmatch(re.escape(anchor) + r"(-\d+)?", other) is not None for other in found)
        found.append(f"{anchor}-{count}" if count > 0 else anchor)
    return found


class PagesTest(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = (page.parent / path).resolve() if path else page
                with self.subTest(page=str(page.relative_to(ROOT)), target=target):
                    self.assertTrue(file.exists(), "no such file")
                    if anchor:
                        self.assertIn(anchor, anchors(file))

    def test_the_changelog_and_the_readme_have_the_version_of_the_makefile(self):
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        version, date = (re.search(rf"^{name} := (.*)$", makefile, re.M)[1] for name in ("VERSION", "DATE"))
        changelog = (ROOT / "tools" / "debian" / "changelog").read_text(encoding="utf-8")
        self.assertTrue(changelog.startswith(f"minimind ({version}) "))
        changed = email.utils.parsedate_to_datetime(re.search(r"^ -- .*>  (.*)$", changelog, re.M)[1])
        self.assertEqual(changed.date().isoformat(), date)
        targets = re.search(r"^RELEASE_TARGETS := (.*)$", makefile, re.M)[1].split()
        files = {f"minimind-{version}-{target}.{'zip' if 'windows' in target else 'tar.gz'}" for target in targets}
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            named = set(re.findall(r"minimind[-_]\d[\w.-]*\.(?:tar\.gz|zip|deb)", text))
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertLessEqual(named, files | {f"minimind_{version}_amd64.deb"})
                if page == ROOT / "README.md":
                    for language in text.split("\n# 中文\n"):
                        self.assertLessEqual(files, set(re.findall(r"`(minimind-[^` ]*)`", language)))

    def test_the_matrix_of_clients_has_the_versions_that_are_tried(self):
        page = (ROOT / "tools" / "serve" / "API.md").read_text(encoding="utf-8")
        lines = (ROOT / "tests/tools/serve/clients/versions.txt").read_text().splitlines()
        tried = [set(re.findall(r"([\w-]+)(?:\[\w+\])?==(\S+)", line)) for line in lines if not line.startswith("#")]
        for mark in ("clients", "客户端"):
            matrix = page.split(f"<!--{mark}-->\n")[1].split(f"<!--/{mark}-->")[0]
            found = set(re.findall(r"^\| `(\S+)` (\d\S*?)[: ]", matrix, re.M))
            self.assertLessEqual(found, set.union(*tried), f"{mark}; run make test-clients")
            for packages in tried:
                self.assertTrue(packages & found, f"{mark} lacks {packages}; run make test-clients")


if __name__ == "__main__":
    unittest.main()
