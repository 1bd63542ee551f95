"""Bulk jobs in blocks of lines: predicting, scoring and scanning, in this process or on a Ray cluster."""
