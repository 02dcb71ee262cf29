"""Words in the names of columns, one table for each language; `names` reads them.

A line of a table says what its words point at:

- a letter of Safe Harbor's rule and a kind: `B zip` or `A person`;
- `- sensitive` and `- quasi-identifier`: the role of columns that are none of the rule's 18;
- `- address`: where a person lives to the door, which is an identifier, however few there are;
- `- thing`: what is named there is no person.

A kind may end in `?`, for words that count only where the values tell persons apart, and in `!`, for words
that must be all of the name: `cap` is a postcode in Italy and something else everywhere.

Words are patterns of whole words, written as the language spells them, with `_` where words may be apart: a
name is read in small letters, without accents, and `ä` also as `ae`. A word after `=` needs its accents. NO
stands for a number or an identifier, WHEN for what happens to a patient. A word of one language may mean
something else in another, and only then is it best left out.
"""
