"""Operators on one backend: prepared, called and judged; fallbacks and relations."""
