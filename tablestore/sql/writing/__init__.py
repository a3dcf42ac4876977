"""What a statement that writes makes of its query: the rows of INSERT, the columns of CREATE TABLE … AS."""
