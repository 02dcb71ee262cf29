"""The core: knows no plug-in, no engine, no dataframe."""
