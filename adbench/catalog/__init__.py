"""Which cases, backends and reports there are: finding, selecting, loading and scaffolding their files."""
