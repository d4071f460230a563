# ctest_counts FILE: the counts in a file of `ctest --output-junit`, as "12 passed, 0 failed" (", 1 skipped" where any was).
ctest_counts() {
  python3 - "$1" <<'PYTHON'
import sys
import xml.etree.ElementTree as tree

cases = tree.parse(sys.argv[1]).getroot().findall("testcase")
skipped = sum(case.find("skipped") is not None or case.get("status") in ("notrun", "disabled") for case in cases)
failed = sum(case.find("failure") is not None or case.get("status") == "fail" for case in cases)
print(f"{len(cases) - skipped - failed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
PYTHON
}
