"""Which specs of a batch or a sweep are answered from one kept program, and which of them are asked first."""
