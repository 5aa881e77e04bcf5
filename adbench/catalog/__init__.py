"""Cases, backends and reports: finding, selecting, loading and scaffolding their files."""
