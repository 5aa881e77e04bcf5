"""The oracle: reference derivatives and verdicts. It knows no backend."""
