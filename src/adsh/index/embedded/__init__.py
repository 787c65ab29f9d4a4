"""The default index: a folder on this machine."""
