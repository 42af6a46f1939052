"""The stories that a race begins with, while there is no archive yet to draw references from.

Written by hand to show teachers the range of what is welcome: comparisons, parts, events, money, ages, equal shares.
"""

from redqueen.tasks.math.task import StoryTask


def _seed(story: str, answer: int, steps: int) -> StoryTask:
    return StoryTask("math_w", text=story, answer=answer, steps=steps)


WORD_SEEDS: tuple[StoryTask, ...] = (
    _seed(
        "Ann has 24 apples. Ben has 17 more apples than Ann. How many apples does Ben have?",
        41,
        1,
    ),
    _seed(
        "Lena has 48 stickers. Omar has half as many stickers as Lena. "
        "How many stickers do Lena and Omar have together?",
        72,
        2,
    ),
    _seed(
        "Finn and Gus have 62 marbles together. Finn has 14 fewer marbles than Gus. How many marbles does Gus have?",
        38,
        6,
    ),
    _seed(
        "Maya has 35 coins. Maya finds 18 coins. Maya gives 12 coins to Noah. How many coins does Maya have?",
        41,
        2,
    ),
    _seed(
        "The box has 96 eggs. The baker has 15 eggs. The box gives a third of the eggs to the baker. "
        "How many eggs does the baker have?",
        47,
        3,
    ),
    _seed(
        "Rosa has 84 cookies. Rosa eats 6 cookies. Rosa shares the cookies equally among 6 friends. "
        "How many cookies does each friend get?",
        13,
        2,
    ),
    _seed(
        "Ivan has 9 boxes with 14 pencils in each. Ivan loses 17 pencils. How many pencils does Ivan have?",
        109,
        1,
    ),
    _seed(
        "One pen costs 7 dollars. One book costs 16 dollars more than one pen. "
        "How many dollars do 2 pens and 3 books cost?",
        83,
        2,
    ),
    _seed(
        "Jane has 150 dollars. One shirt costs 28 dollars. Jane pays for 4 shirts. How many dollars does Jane have?",
        38,
        1,
    ),
    _seed(
        "Kofi pays 58 dollars for 3 cups and 4 plates. One plate costs 3 dollars less than one cup. "
        "How many dollars do 20 plates cost?",
        140,
        6,
    ),
    _seed(
        "Eva is 9 years older than Dan. Eva and Dan are 41 years old together. How old is Eva?",
        25,
        6,
    ),
    _seed(
        "In 6 years Hana will be twice as old as Leo. Hana is 26 years older than Leo. How old is Hana?",
        46,
        10,
    ),
    _seed(
        "8 years ago Sam was 3 times as old as Tess. Sam is 34 years older than Tess. How old will Sam be in 5 years?",
        64,
        10,
    ),
    _seed(
        "Cara has 30 nuts. Cara has twice as many shells as nuts. Dan has 13 fewer shells than Cara. "
        "How many shells does Dan have?",
        47,
        2,
    ),
    _seed(
        "Omar has 20 more than 3 times as many stamps as Lena. Lena and Omar have 136 stamps together. "
        "How many stamps does Omar have?",
        107,
        6,
    ),
    _seed(
        "The farmer has 200 sheep. The farmer sells 35 percent of the sheep. The farmer buys 22 sheep. "
        "How many sheep does the farmer have?",
        152,
        3,
    ),
    _seed(
        "At the start Tim has no miles. Tim walks 3 miles every day for 6 days. Tim runs 13 miles. "
        "How many miles does Tim have?",
        31,
        2,
    ),
    _seed(
        "Nia gives 15 cards to Paul. Paul gives 6 cards to Nia. Now Nia has 40 cards. "
        "How many cards did Nia have at first?",
        49,
        2,
    ),
    _seed(
        "Ann has 11 fewer shells than Ben. Cara has as many shells as Ann and Ben together. "
        "Cara has 75 shells. How many more shells does Cara have than Ann?",
        43,
        6,
    ),
    _seed(
        "Max has 72 roses. Max packs the roses into baskets of 6. How many more roses than baskets does Max have?",
        60,
        2,
    ),
    _seed(
        "Lily has 60 dollars. Lily buys 7 candles for 4 dollars each. "
        "Lily sells 3 candles for 9 dollars each. How many dollars does Lily have?",
        59,
        2,
    ),
    _seed(
        "Ben has 45 cups. Ben drops a fifth of the cups. Now Ben has 17 more plates than cups. "
        "How many plates does Ben have?",
        53,
        3,
    ),
    _seed(
        "Uma is 4 times as old as Vic. Wes is 15 years younger than Uma. "
        "Uma, Vic and Wes are 66 years old together. How old is Wes?",
        21,
        8,
    ),
    _seed(
        "Zoe and Yan have 90 beads together. Zoe gives 12 beads to Yan. "
        "Now Yan has twice as many beads as Zoe. How many beads did Yan have at first?",
        48,
        10,
    ),
)
