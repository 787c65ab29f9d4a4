"""One module per table or figure: `TITLE`, `cells(config)` and `show(config, done)`."""
