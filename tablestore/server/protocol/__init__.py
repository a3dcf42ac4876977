"""The Paimon REST catalog protocol, server side: one module an object of it."""
