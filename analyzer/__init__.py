"""A static analyzer for TorchInductor debug artifacts."""
