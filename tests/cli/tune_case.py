"""What the tests of `fdbench tune` and of its profiles share: a scripted device and its landscape."""

import harness

# A valley over the chunks that 1 to 32 splits and the rules make.
SHAPE = ["--seq", "1024", "--heads", "2", "--dim", "64"]
CHUNKS = {1024: 3000, 512: 2000, 342: 1600, 256: 1300, 192: 1200, 171: 1100, 128: 1000, 86: 1150, 64: 1400, 43: 1800, 32: 2500}


class TuneCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.env = {"XDG_CONFIG_HOME": self.path("config"), "XDG_STATE_HOME": self.path("state")}
        self.profile = self.folder / "config" / "fdbench" / "profiles" / "scripted.json"
        self.points = self.folder / "state" / "fdbench" / "tune" / "scripted.json"

    def fdbench(self, *args, **kw):
        return harness.fdbench(*args, env=self.env, **kw)

    def landscape(self, name="script", device=None, **other):
        content = {"chunk_ns": {str(c): ns for c, ns in CHUNKS.items()}, **other}
        return self.script(name, device={"name": "Scripted", "driver": "580.1", **(device or {})},
                           variants={"fake_other": content})

    def tune(self, *args, script=None):
        return self.fdbench("tune", "--fake", script or self.landscape(), *SHAPE, "--rounds", "12", *args)

    def run_rows(self, *args, script=None, shape=SHAPE, rounds="3"):
        path = self.path("run.json")
        result = self.fdbench("run", "--fake", script or self.landscape(), *shape, "--rounds", rounds, "--json", path, *args)
        self.assert_exit(result, 0)
        return result, harness.rows_of(path)

    def entries(self):
        return harness.read_json(self.profile)["entries"]
