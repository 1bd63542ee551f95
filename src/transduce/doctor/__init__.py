"""The corpus doctor: what is wrong with raw text files, before a model learns from them.

report = examine("train.de.gz", "train.en.gz", test_source="test.de", test_target="test.en")
clean("train.de.gz", "train.en.gz", "clean.de.gz", "clean.en.gz", report)
"""

from transduce.doctor.clean import Cleaned, clean
from transduce.doctor.examine import examine, examine_text
from transduce.doctor.labels import examine_labelled
from transduce.doctor.lines import ScannedFile, column_of
from transduce.doctor.recordings import examine_recordings
from transduce.doctor.report import Finding, Report, Severity

__all__ = [
    "Cleaned",
    "Finding",
    "Report",
    "ScannedFile",
    "Severity",
    "clean",
    "column_of",
    "examine",
    "examine_labelled",
    "examine_recordings",
    "examine_text",
]
