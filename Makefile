# Everything a user or contributor starts is here; `make help` lists it.
